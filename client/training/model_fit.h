// SPDX-License-Identifier: Apache-2.0
//
// Arrays of examples and labels, as they lie in files, made into what a model in training takes.
// Pure functions. Messages name the flag of `tilewire train` that an array comes from.
#ifndef CLIENT_TRAINING_MODEL_FIT_H_
#define CLIENT_TRAINING_MODEL_FIT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/image.h"
#include "client/npy.h"
#include "client/tensor.h"
#include "client/training/dataset.h"
#include "engine/trainer.h"

namespace tilewire::client {

// A declared input or output of a model, as a server would tell it.
TensorMetadata MetadataOf(const TensorSpec& spec);

// The same the other way round.
//   kInvalidArgument  a type that no model of the engine takes
absl::StatusOr<TensorSpec> SpecOf(const TensorMetadata& tensor);

// The only input of the model.
//   kInvalidArgument  it has several, or none
absl::StatusOr<TensorSpec> OnlyInput(const ModelSignature& signature);

// The output of this name; an empty one: the first.
//   kInvalidArgument  there is none; the message names those that there are
absl::StatusOr<int> OutputOf(const ModelSignature& signature, absl::string_view name);

struct InputArray {
  std::string source;  // the flag with its value
  NpyArray array;
  Layout layout = Layout::kNchw;  // of one example: CxHxW or HxWxC
  Normalization normalization;
  bool is_normalized_by_user = false;  // --scale, --mean or --std was given
};

struct FittedInputs {
  ExampleTensors tensors;
  ByteValues values;
};

// Bytes become floats where the model takes floats; else the elements are those of the input.
// Planes become pixels where the model declares [N, H, W, C].
//   kInvalidArgument  another shape or type than the input's
absl::StatusOr<FittedInputs> FitInputs(const TensorSpec& input, InputArray inputs);

// kInvalidArgument  batches of this size, or the smaller one that ends an epoch, do not fit
absl::Status CheckBatchFits(const TensorSpec& input, int64_t batch, int64_t trained);

struct LabelArray {
  std::string source;
  NpyArray array;
};

// The targets of `count` examples for a loss whose target is `target` and whose output is `output`.
//   kInvalidArgument  another number of them than there are examples; a class that `output` does
//                     not have, with its place; values that the loss does not take
absl::StatusOr<ExampleTensors> FitTargets(const LossSpec& loss, const TensorSpec& target,
                                          const TensorSpec& output, const LabelArray& labels,
                                          int64_t count);

}  // namespace tilewire::client

#endif  // CLIENT_TRAINING_MODEL_FIT_H_
