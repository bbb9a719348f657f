// SPDX-License-Identifier: Apache-2.0
//
// The options of `tilewire tune`, and the examples that they describe.
#ifndef CLIENT_TOOL_TUNE_TUNE_FLAGS_H_
#define CLIENT_TOOL_TUNE_TUNE_FLAGS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/tool/picture_options.h"
#include "client/tuning/tuning_examples.h"
#include "engine/model.h"
#include "engine/tuner.h"

namespace tilewire::client {

struct TuneFlags {
  std::string model, images, folder, labels, shape;
  std::string budget, goal, precisions, time = "5m", qdq, html;
  std::vector<std::string> arrays;  // [INPUT=]FILE
  bool tuning = false, rows = false, json = false;
  PictureOptions pictures;
  bool normalizes = false;  // --scale, --mean or --std was given
  int64_t free_size = 224, made_up = 64;
  double hold_out = 0.5;
  uint64_t seed = 1;
  int threads = 0;  // 0: as many as the cores that this process is granted

  bool is_made_up() const { return images.empty() && folder.empty() && arrays.empty(); }
};
void AddTuneOptions(CLI::App* command, TuneFlags* flags);

// The spec without its callbacks. `has_bf16`: whether this CPU has products of it.
//   kInvalidArgument  neither budget nor goal, one or a time that is not one, a flag without an
//                     effect, a file that cannot be written or is the model itself, nothing that
//                     is to be written
absl::StatusOr<TuningSpec> TuningSpecOf(const CLI::App& command, const TuneFlags& flags,
                                        bool has_bf16);

//   kInvalidArgument  pictures, arrays or labels that do not fit the model, a folder without
//                     pictures
//   what reading them fails with
absl::StatusOr<TuningExamples> ReadTuningExamples(const TuneFlags& flags,
                                                  const ModelSignature& signature);

}  // namespace tilewire::client

#endif  // CLIENT_TOOL_TUNE_TUNE_FLAGS_H_
