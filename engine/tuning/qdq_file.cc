// SPDX-License-Identifier: Apache-2.0
#include "engine/tuning/qdq_file.h"

#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/tuning/qdq_edits.h"

namespace tilewire::tuning {
namespace {

// The weights of a convolution, for outputs that are divided by `given` and inputs that are
// multiplied by `read`; either may be empty.
void Scale(const Dims& dims, const std::vector<float>& given, const std::vector<float>& read,
           std::vector<float>* weights) {
  const int64_t outputs = dims[0], inputs = dims[1];
  const int64_t inner = static_cast<int64_t>(weights->size()) / (outputs * inputs);
  // Inputs are those of the output's group.
  const int64_t groups = read.empty() ? 1 : static_cast<int64_t>(read.size()) / inputs;
  float* weight = weights->data();
  for (int64_t o = 0; o < outputs; ++o) {
    const int64_t first = o / (outputs / groups) * inputs;
    for (int64_t i = 0; i < inputs; ++i) {
      const float factor = (read.empty() ? 1 : read[first + i]) / (given.empty() ? 1 : given[o]);
      for (int64_t k = 0; k < inner; ++k) *weight++ *= factor;
    }
  }
}

}  // namespace

std::string WithOutputs(const ModelSource& source, const std::vector<std::string>& tensors) {
  QdqEdits edits(source);
  for (const std::string& tensor : tensors) edits.AddOutput(tensor);
  return edits.Finish();
}

absl::StatusOr<const ByteWeights*> QdqWriter::BytesOf(const Layer& layer) {
  const std::string key = absl::StrCat(layer.weights, "/", layer.axis, "/", layer.largest_weight);
  if (const auto found = bytes_.find(key); found != bytes_.end()) return &found->second;
  ABSL_ASSIGN_OR_RETURN(const std::vector<float> weights, LoadWeights(layer));
  const Dims& dims = source_.Initializer(layer.weights)->dims;
  return &bytes_.emplace(key, ToBytes(weights, dims, layer.axis, layer.largest_weight))
              .first->second;
}

absl::StatusOr<std::vector<float>> QdqWriter::LoadWeights(const Layer& layer) const {
  ABSL_ASSIGN_OR_RETURN(std::vector<float> weights, source_.LoadFloats(layer.weights));
  if (absl::c_all_of(weights, [](float weight) { return std::isfinite(weight); })) return weights;
  return InvalidArgument("weights '", layer.weights, "' are not all finite");
}

absl::StatusOr<LayerIntegers> QdqWriter::IntegersOf(int index, const TensorParams& tensors,
                                                    const Corrections& corrections,
                                                    ByteWeights* own_weights) {
  const Layer& layer = layers_[index];
  const auto src = tensors.find(layer.input);
  if (src == tensors.end())
    return Internal("node '", layer.name, "': its input '", layer.input, "' has no range");
  LayerIntegers integers{.dims = source_.Initializer(layer.weights)->dims,
                         .src_scale = src->second.scale};
  if (!layer.bias.empty()) {
    ABSL_ASSIGN_OR_RETURN(integers.biases, source_.LoadFloats(layer.bias));
  }
  const auto shift = corrections.shifts.find(index);
  if (shift != corrections.shifts.end()) {
    integers.has_own_biases = true;
    integers.biases.resize(shift->second.size());
    for (size_t i = 0; i < shift->second.size(); ++i) integers.biases[i] -= shift->second[i];
  }
  std::vector<float> given, read;
  for (const EqualizedTensor& tensor : corrections.tensors) {
    if (tensor.giver == index) given = tensor.factors;
    if (tensor.reader == index) read = tensor.factors;
  }
  const bool is_scaled = !given.empty() || !read.empty();
  if (!is_scaled && writes_several_) {
    ABSL_ASSIGN_OR_RETURN(integers.weights, BytesOf(layer));
    return integers;
  }
  integers.has_own_weights = is_scaled;
  integers.has_own_biases |= is_scaled;
  for (size_t i = 0; i < given.size() && !integers.biases.empty(); ++i)
    integers.biases[i] /= given[i];
  ABSL_ASSIGN_OR_RETURN(std::vector<float> weights, LoadWeights(layer));
  if (is_scaled) Scale(integers.dims, given, read, &weights);
  *own_weights = ToBytes(weights, integers.dims, layer.axis, layer.largest_weight);
  integers.weights = own_weights;
  return integers;
}

absl::StatusOr<std::string> QdqWriter::Write(const Precisions& precisions,
                                             const TensorParams& tensors,
                                             const Corrections& corrections) {
  QdqEdits edits(source_);
  for (const auto& [tensor, params] : tensors) edits.Convert(tensor, params);
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (precisions[i] != TunedPrecision::kExact) edits.Name(layers_[i]);
    if (precisions[i] != TunedPrecision::kInt8) continue;
    ByteWeights own_weights;
    ABSL_ASSIGN_OR_RETURN(const LayerIntegers integers,
                          IntegersOf(static_cast<int>(i), tensors, corrections, &own_weights));
    edits.Replace(layers_[i], integers);
  }
  return edits.IsEmpty() ? source_.bytes() : edits.Finish();
}

absl::StatusOr<TwinFile> QdqWriter::WriteTwins(const TensorParams& tensors,
                                               const std::vector<EqualizedTensor>& equalized) {
  QdqEdits edits(source_);
  TwinFile file;
  std::map<std::string, std::string> real;
  for (const auto& [tensor, params] : tensors) {
    const auto found = absl::c_find_if(
        equalized, [name = tensor](const EqualizedTensor& one) { return one.name == name; });
    real[tensor] = edits.ConvertBeside(
        tensor, params, found == equalized.end() ? std::vector<float>() : found->factors);
  }
  const Corrections corrections{.tensors = equalized};
  for (size_t i = 0; i < layers_.size(); ++i) {
    ByteWeights own_weights;
    ABSL_ASSIGN_OR_RETURN(const LayerIntegers integers,
                          IntegersOf(static_cast<int>(i), tensors, corrections, &own_weights));
    const std::string& result = source_.nodes()[layers_[i].node].proto.output(0);
    file.twins.push_back(edits.AddTwin(layers_[i], integers, real[layers_[i].input]));
    file.originals.push_back(result);
    edits.AddOutput(file.twins.back());
    if (!source_.IsOutput(result)) edits.AddOutput(result);
  }
  file.bytes = edits.Finish();
  return file;
}

}  // namespace tilewire::tuning
