// SPDX-License-Identifier: Apache-2.0
#include "client/training/dataset.h"

#include <cstring>

#include "absl/strings/string_view.h"

namespace tilewire::client {
namespace {

BatchTensor Gather(const ExampleTensors& all, absl::Span<const int64_t> examples) {
  BatchTensor batch{all.dims, all.layout, {}};
  batch.dims.insert(batch.dims.begin(), static_cast<int64_t>(examples.size()));
  batch.bytes.reserve(examples.size() * all.size);
  for (const int64_t example : examples)
    batch.bytes.append(all.bytes, example * all.size, all.size);
  return batch;
}

std::string ToFloats(absl::string_view bytes, int64_t example_size, const ByteValues& values) {
  const int64_t channels = static_cast<int64_t>(values.of_channel.size());
  std::string floats(bytes.size() * sizeof(float), '\0');
  char* out = floats.data();
  for (size_t first = 0; first < bytes.size(); first += example_size) {
    for (int64_t j = 0; j < example_size; ++j, out += sizeof(float)) {
      const float value =
          values.of_channel[j / values.run % channels][static_cast<uint8_t>(bytes[first + j])];
      std::memcpy(out, &value, sizeof(float));
    }
  }
  return floats;
}

}  // namespace

ByteValues::ByteValues(const Normalization& normalization, int64_t channels, int64_t run)
    : of_channel(channels), run(run) {
  const auto of = [](const std::vector<float>& all, int64_t c) {
    return all[all.size() == 1 ? 0 : c];
  };
  for (int64_t c = 0; c < channels; ++c) {
    for (int byte = 0; byte < 256; ++byte) {
      of_channel[c][byte] =
          (static_cast<float>(byte) * normalization.scale - of(normalization.mean, c)) /
          of(normalization.std, c);
    }
  }
}

std::vector<InputTensor> Batch::TargetViews() const {
  std::vector<InputTensor> views;
  for (const BatchTensor& target : targets) views.push_back(target.View());
  return views;
}

Batch Dataset::Take(absl::Span<const int64_t> examples) const {
  Batch batch{static_cast<int64_t>(examples.size()), TakeInputs(examples), {}};
  for (const ExampleTensors& targets : targets_) batch.targets.push_back(Gather(targets, examples));
  return batch;
}

BatchTensor Dataset::TakeInputs(absl::Span<const int64_t> examples) const {
  BatchTensor inputs = Gather(inputs_, examples);
  if (!values_.of_channel.empty()) inputs.bytes = ToFloats(inputs.bytes, inputs_.size, values_);
  return inputs;
}

BatchTensor Dataset::TakeTargets(int64_t loss, absl::Span<const int64_t> examples) const {
  return Gather(targets_.at(loss), examples);
}

}  // namespace tilewire::client
