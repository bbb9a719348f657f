// SPDX-License-Identifier: Apache-2.0
//
// The options of `tilewire train`, and the training and the examples that they describe.
#ifndef CLIENT_TOOL_TRAIN_FLAGS_H_
#define CLIENT_TOOL_TRAIN_FLAGS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/npy.h"
#include "client/tool/picture_options.h"
#include "client/training/class_folder.h"
#include "client/training/dataset.h"
#include "client/training/element_check.h"
#include "client/training/held_out.h"
#include "engine/trainer.h"

namespace tilewire::client {

struct TrainFlags {
  std::string model, images, labels, folder, shape, layout = "nchw", output, html;
  bool json = false;
  PictureOptions pictures;
  bool normalizes = false;  // --scale, --mean or --std was given
  std::string loss = "cross_entropy", loss_output;
  std::vector<std::string> added_losses;  // OUTPUT:LOSS:FACTOR
  double label_smoothing = 0, delta = 1;
  std::optional<int64_t> ignore_index;
  std::vector<float> class_weights;
  std::string optimizer = "sgd";
  std::optional<double> rate;  // unset: 0.01 of sgd, 0.001 of others
  double momentum = 0, decay = 0, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  bool nesterov = false;
  std::string schedule = "constant";
  int64_t warm_up = 0;
  double step_epochs = 1, step_factor = 0.1, power = 1, least_rate = 0;
  std::vector<std::string> only, freeze;
  double clip_norm = 0, clip_value = 0;
  double average = 0;
  bool frozen_statistics = false, recalibrates = false;
  int64_t epochs = 10, batch = 32;
  double hold_out = 0;
  uint64_t seed = 1;
  int threads = 0;  // 0: as many as the cores that this process is granted
};
void AddTrainOptions(CLI::App* command, TrainFlags* flags);

// kInvalidArgument  a flag that `command` was given has no effect beside others, or one is missing;
//                   a file that would be written is one that is read
absl::Status CheckTrainFlags(const CLI::App& command, const TrainFlags& flags);

// The flags that were given, with their values.
std::vector<std::pair<std::string, std::string>> GivenFlags(const CLI::App& command);

// The flags that inputs and labels come from.
ExampleSources SourcesOf(const TrainFlags& flags);

// The loss of --loss, then those of --add_loss, all of the same labels.
//   kInvalidArgument  an --add_loss that is none
absl::StatusOr<std::vector<LossSpec>> LossesOf(const TrainFlags& flags);
// The flags have passed CheckTrainFlags().
TrainingSpec SpecOf(const TrainFlags& flags, int64_t updates_of_epoch);

// A --shape of numbers from 1, and the array in the file of `flag`; of tune and evaluate, too.
//   kInvalidArgument  it is not one
absl::StatusOr<std::vector<int64_t>> ParseShapeFlag(const std::string& text);
// Files without a header whose names do not tell the type of the elements.
enum class OtherNames { kAreRefused, kAreBytes };
absl::StatusOr<NpyArray> ReadArrayFile(const std::string& flag, const std::string& file,
                                       absl::Span<const int64_t> example,
                                       OtherNames others = OtherNames::kAreRefused);

// All that is wrong with pictures, of `count`, in one message; of tune, too. `refused` has one at
// least.
absl::Status RefusedPictures(const std::vector<absl::Status>& refused, int64_t count);

// The examples as far as they can be told before the model is read.
struct ExampleFiles {
  NpyArray images, labels;  // of --images and --labels
  ClassFolder folder;       // of --folder
  int64_t count = 0;
};
//   kInvalidArgument  files or folders that hold no examples
//   what reading them fails with
absl::StatusOr<ExampleFiles> FindExamples(const TrainFlags& flags);

struct FittedExamples {
  Dataset dataset;
  JudgedOutput judged;
};
// The examples as the model takes them, `trained` of which are trained on; reads the pictures of a
// folder.
//   kInvalidArgument  examples, labels or batches that do not fit the model, a file that is not a
//                     picture
absl::StatusOr<FittedExamples> ReadExamples(const TrainFlags& flags, ExampleFiles files,
                                            int64_t trained, const Trainer& trainer);

}  // namespace tilewire::client

#endif  // CLIENT_TOOL_TRAIN_FLAGS_H_
