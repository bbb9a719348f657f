// SPDX-License-Identifier: Apache-2.0
#include "engine/tuning/corrections/equalization.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "engine/base/status_macros.h"
#include "engine/tuning/qdq_file.h"

namespace tilewire::tuning {
namespace {

constexpr float kLeastFactor = 1.0f / 256;  // smaller channels are noise

// A number that the file gives as an initializer or by a Constant; nullopt: neither.
absl::StatusOr<std::optional<float>> NumberOf(const ModelSource& source, const std::string& name) {
  if (const SourceInitializer* initializer = source.Initializer(name); initializer != nullptr) {
    if (initializer->type != onnx::TensorProto::FLOAT || source.IsInput(name))
      return std::optional<float>();
    ABSL_ASSIGN_OR_RETURN(const std::vector<float> numbers, source.LoadFloats(name));
    return numbers.size() == 1 ? std::optional(numbers[0]) : std::nullopt;
  }
  const int producer = source.ProducerOf(name);
  if (producer < 0 || source.nodes()[producer].proto.op_type() != "Constant")
    return std::optional<float>();
  for (const onnx::AttributeProto& attribute : source.nodes()[producer].proto.attribute()) {
    const onnx::TensorProto& value = attribute.t();
    if (attribute.name() != "value" || value.data_type() != onnx::TensorProto::FLOAT) continue;
    float number = 0;
    if (value.raw_data().size() == sizeof(number)) {
      memcpy(&number, value.raw_data().data(), sizeof(number));
      return std::optional(number);
    }
    if (value.float_data_size() == 1) return std::optional(value.float_data(0));
  }
  return std::optional<float>();
}

bool IsReadOnce(const ModelSource& source, const std::string& tensor) {
  return source.ReadersOf(tensor).size() == 1 && !source.IsOutput(tensor) &&
         !source.IsReadInside(tensor);
}

// The bounds of a Clip that starts at 0; nullopt: another one.
absl::StatusOr<std::optional<float>> UpperBoundOf(const ModelSource& source,
                                                  const onnx::NodeProto& clip) {
  if (clip.input_size() < 3) return std::optional<float>();
  ABSL_ASSIGN_OR_RETURN(const std::optional<float> low, NumberOf(source, clip.input(1)));
  ABSL_ASSIGN_OR_RETURN(const std::optional<float> high, NumberOf(source, clip.input(2)));
  return low == 0.0f && high > 0.0f ? high : std::nullopt;
}

// The tensor that the activation of this one reads, or this one; empty: no factors pass through it.
absl::StatusOr<std::string> BeforeActivation(const ModelSource& source, const std::string& tensor,
                                             std::optional<float>* most) {
  const int producer = source.ProducerOf(tensor);
  if (producer < 0) return std::string();
  const onnx::NodeProto& node = source.nodes()[producer].proto;
  if (node.op_type() == "Clip") {
    ABSL_ASSIGN_OR_RETURN(*most, UpperBoundOf(source, node));
    if (!*most) return std::string();
  } else if (node.op_type() != "Relu") {
    return tensor;
  }
  return IsReadOnce(source, node.input(0)) ? node.input(0) : std::string();
}

// Takes what each example gives for each tensor.
absl::Status Observe(const ModelSource& source, const std::vector<Equalizable>& tensors,
                     const TrialRuns& runs, const ExampleSet& set,
                     const std::function<void(size_t, const OutputTensor&)>& take) {
  std::vector<std::string> names;
  absl::flat_hash_map<std::string, size_t> index;
  for (size_t i = 0; i < tensors.size(); ++i) {
    names.push_back(tensors[i].name);
    index[tensors[i].name] = i;
  }
  ABSL_ASSIGN_OR_RETURN(const auto probe, runs.Load(WithOutputs(source, names)));
  for (int64_t example : set.chosen) {
    ABSL_RETURN_IF_ERROR(runs.RunAll(*probe, example, [&](const OutputTensor& output) {
      const auto found = index.find(probe->signature().outputs[output.index].name);
      if (found != index.end()) take(found->second, output);
      return absl::OkStatus();
    }));
  }
  return absl::OkStatus();
}

// The elements of each channel of each image.
void ForEachPlane(const OutputTensor& output,
                  const std::function<void(int64_t, absl::Span<const float>)>& take) {
  const int64_t channels = output.dims[1];
  const auto* elements = reinterpret_cast<const float*>(output.bytes.data());
  const auto count = static_cast<int64_t>(output.bytes.size() / sizeof(float));
  const int64_t inner = count / std::max<int64_t>(output.dims[0] * channels, 1);
  for (int64_t plane = 0; plane < output.dims[0] * channels; ++plane)
    take(plane % channels, {elements + plane * inner, static_cast<size_t>(inner)});
}

// The largest |weight| that reads each input.
std::vector<float> LargestReading(const std::vector<float>& weights, const Dims& dims,
                                  int64_t channels) {
  const int64_t outputs = dims[0], inputs = dims[1], groups = channels / inputs;
  const int64_t inner = static_cast<int64_t>(weights.size()) / (outputs * inputs);
  std::vector<float> largest(channels, 0);
  const float* weight = weights.data();
  for (int64_t o = 0; o < outputs; ++o) {
    for (int64_t i = 0; i < inputs; ++i) {
      float& most = largest[o / (outputs / groups) * inputs + i];
      for (int64_t k = 0; k < inner; ++k) most = std::max(most, std::fabs(*weight++));
    }
  }
  return largest;
}

}  // namespace

absl::StatusOr<std::vector<Equalizable>> FindEqualizable(const ModelSource& source,
                                                         const std::vector<Layer>& layers) {
  absl::flat_hash_map<std::string, int> giver_of;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].op == "Conv" && layers[i].can_shift)
      giver_of[source.nodes()[layers[i].node].proto.output(0)] = static_cast<int>(i);
  }
  std::vector<Equalizable> found;
  for (size_t i = 0; i < layers.size(); ++i) {
    const Layer& reader = layers[i];
    if (reader.op != "Conv" || !IsReadOnce(source, reader.input)) continue;
    if (source.Initializer(reader.weights)->dims.size() != 4) continue;
    Equalizable one{.name = reader.input, .reader = static_cast<int>(i)};
    ABSL_ASSIGN_OR_RETURN(const std::string given,
                          BeforeActivation(source, reader.input, &one.most));
    const auto giver = giver_of.find(given);
    if (giver == giver_of.end()) continue;
    one.giver = giver->second;
    found.push_back(std::move(one));
  }
  return found;
}

std::vector<float> FactorsOf(const std::vector<float>& largest, const std::vector<float>& weights,
                             const Dims& dims, std::optional<float> most) {
  const auto channels = static_cast<int64_t>(largest.size());
  const float top = *std::max_element(largest.begin(), largest.end());
  std::vector<float> factors(channels, 1);
  if (top == 0) return factors;
  const std::vector<float> read = LargestReading(weights, dims, channels);
  const bool is_depthwise = dims[1] == 1 && channels > 1;
  float even = 0;  // the largest a / factor
  for (int64_t c = 0; c < channels; ++c) {
    // Channels of zeros stay.
    if (largest[c] == 0 || read[c] == 0) continue;
    factors[c] = is_depthwise ? largest[c] : std::sqrt(largest[c] / read[c]);
    even = std::max(even, largest[c] / factors[c]);
  }
  for (int64_t c = 0; c < channels; ++c) {
    if (largest[c] == 0 || read[c] == 0) continue;
    factors[c] = std::max(factors[c] * even / top, kLeastFactor);
    // Beyond the bound an activation gives the bound, whatever it is divided by.
    if (most) factors[c] = largest[c] >= *most ? 1 : std::max(factors[c], largest[c] / *most);
  }
  return factors;
}

absl::StatusOr<std::vector<EqualizedRange>> Equalize(const ModelSource& source,
                                                     const std::vector<Layer>& layers,
                                                     const TrialRuns& runs, const ExampleSet& set) {
  ABSL_ASSIGN_OR_RETURN(const std::vector<Equalizable> tensors, FindEqualizable(source, layers));
  std::vector<EqualizedRange> equalized(tensors.size());
  if (tensors.empty()) return equalized;
  std::vector<std::vector<float>> largest(tensors.size());
  ABSL_RETURN_IF_ERROR(
      Observe(source, tensors, runs, set, [&](size_t i, const OutputTensor& output) {
        largest[i].resize(output.dims[1], 0);
        ForEachPlane(output, [&](int64_t c, absl::Span<const float> plane) {
          for (float number : plane) largest[i][c] = std::max(largest[i][c], std::fabs(number));
        });
      }));
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::string& weights = layers[tensors[i].reader].weights;
    ABSL_ASSIGN_OR_RETURN(const std::vector<float> elements, source.LoadFloats(weights));
    equalized[i].tensor = {
        tensors[i].name, tensors[i].giver, tensors[i].reader,
        FactorsOf(largest[i], elements, source.Initializer(weights)->dims, tensors[i].most)};
  }
  std::vector<RangeHistogram> histograms(tensors.size());
  std::vector<float> divided;
  ABSL_RETURN_IF_ERROR(
      Observe(source, tensors, runs, set, [&](size_t i, const OutputTensor& output) {
        ForEachPlane(output, [&](int64_t c, absl::Span<const float> plane) {
          divided.assign(plane.begin(), plane.end());
          for (float& number : divided) number /= equalized[i].tensor.factors[c];
          histograms[i].Add(divided);
        });
      }));
  for (size_t i = 0; i < tensors.size(); ++i) {
    for (size_t m = 0; m < kRangeMethods.size(); ++m)
      equalized[i].ranges[m] = histograms[i].Find(kRangeMethods[m]);
  }
  return equalized;
}

}  // namespace tilewire::tuning
