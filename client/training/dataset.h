// SPDX-License-Identifier: Apache-2.0
//
// Examples, each an input and a target for each loss, and batches of them as a trainer takes
// them. Pictures are held as bytes, a quarter of the floats that they become, batch by batch:
//
//   value = (byte * scale - mean[c]) / std[c]
//
// Immutable: any number of threads may use it.
#ifndef CLIENT_TRAINING_DATASET_H_
#define CLIENT_TRAINING_DATASET_H_

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "client/image.h"
#include "engine/model.h"

namespace tilewire::client {

// A tensor of each example, one after the other.
struct ExampleTensors {
  std::string bytes;
  int64_t size = 0;  // bytes of one, > 0
  Dims dims;         // of one, in logical order
  ::tilewire::Layout layout = ::tilewire::Layout::kNchw;

  int64_t count() const { return static_cast<int64_t>(bytes.size()) / size; }
};

// The floats that bytes become. Byte j of an example is of channel j / run % channels.
struct ByteValues {
  std::vector<std::array<float, 256>> of_channel;  // none: the elements are taken as they are
  int64_t run = 1;

  // `channels` is what mean and std have values for, where they have more than one.
  ByteValues() = default;
  ByteValues(const Normalization& normalization, int64_t channels, int64_t run);
};

struct BatchTensor {
  Dims dims;
  ::tilewire::Layout layout = ::tilewire::Layout::kNchw;
  std::string bytes;

  // Valid while this is neither changed nor moved.
  InputTensor View() const { return {dims, layout, {bytes}}; }
};

struct Batch {
  int64_t count = 0;
  BatchTensor input;
  std::vector<BatchTensor> targets;  // one per loss

  // Valid as BatchTensor::View() is.
  std::vector<InputTensor> TargetViews() const;
};

class Dataset {
 public:
  // All of as many examples; `targets` are one per loss, or none.
  Dataset(ExampleTensors inputs, ByteValues values, std::vector<ExampleTensors> targets)
      : inputs_(std::move(inputs)), values_(std::move(values)), targets_(std::move(targets)) {}

  int64_t count() const { return inputs_.count(); }
  Batch Take(absl::Span<const int64_t> examples) const;
  BatchTensor TakeInputs(absl::Span<const int64_t> examples) const;
  BatchTensor TakeTargets(int64_t loss, absl::Span<const int64_t> examples) const;

 private:
  ExampleTensors inputs_;
  ByteValues values_;
  std::vector<ExampleTensors> targets_;
};

}  // namespace tilewire::client

#endif  // CLIENT_TRAINING_DATASET_H_
