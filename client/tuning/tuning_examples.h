// SPDX-License-Identifier: Apache-2.0
//
// Examples of a tuner that hold their bytes: tensors of a client, rows of arrays, made-up numbers.
#ifndef CLIENT_TUNING_TUNING_EXAMPLES_H_
#define CLIENT_TUNING_TUNING_EXAMPLES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/npy.h"
#include "client/tensor.h"
#include "client/training/dataset.h"
#include "client/training/model_fit.h"
#include "engine/model.h"
#include "engine/tuner.h"

namespace tilewire::client {

struct OwnedTensor {
  std::string name;  // of an input
  BatchTensor tensor;
};
using OwnedExample = std::vector<OwnedTensor>;

struct TuningExamples {
  std::vector<OwnedExample> examples;
  std::vector<std::string> files;    // of pictures, one each; else empty
  std::vector<int64_t> labels;       // one each; empty: not known
  std::vector<std::string> classes;  // their names, of folders; else empty
};

// The labels in an array: whole numbers, one for each example.
//   kInvalidArgument  another type or number of them; the message begins with `source`
absl::StatusOr<std::vector<int64_t>> LabelsOf(const std::string& source, const NpyArray& array,
                                              int64_t examples);

// A tensor as a request would carry it, in the order that the model declares.
OwnedTensor OwnedOf(Tensor tensor);

// Puts row i of an array into example i, for `input`; no examples yet: makes them.
//   kInvalidArgument  an array that does not fit, or of another number of rows than the examples
absl::Status AddArray(const TensorSpec& input, InputArray array,
                      std::vector<OwnedExample>* examples);

// Examples of numbers in [0, 1); open dimensions but the first become `free_size`.
//   kInvalidArgument, kUnimplemented  inputs that no numbers can be made up for
absl::StatusOr<std::vector<OwnedExample>> MakeUpExamples(const ModelSignature& signature,
                                                         int64_t count, int64_t free_size,
                                                         uint64_t seed);

// Valid while the examples are neither changed nor moved.
std::vector<TuningExample> ViewsOf(const std::vector<OwnedExample>& examples);

}  // namespace tilewire::client

#endif  // CLIENT_TUNING_TUNING_EXAMPLES_H_
