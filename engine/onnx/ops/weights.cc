// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/ops/weights.h"

#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tilewire::reader {

using network::HeldBytes;
using network::Weights;

namespace {

// How integers become those of s8 with one zero point: what is taken from all, or from those of
// each index of `axis`, and the zero point that is left.
struct Centering {
  int axis = 0;
  std::vector<int32_t> taken;
  int32_t zero_point = 0;
};

// The integers of a constant of u8 or s8 as s8. Load() gives them less the zero point.
class CenteredIntegers final : public network::StoredNumbers {
 public:
  CenteredIntegers(ConstantPtr integers, Centering centering)
      : integers_(std::move(integers)), centering_(std::move(centering)) {}

  absl::StatusOr<HeldFloats> Load() const override {
    ABSL_ASSIGN_OR_RETURN(const HeldBytes held, LoadBytes());
    auto floats = std::make_shared<std::vector<float>>(held.values.begin(), held.values.end());
    for (float& element : *floats) element -= static_cast<float>(centering_.zero_point);
    return HeldFloats{*floats, floats};
  }

  absl::StatusOr<HeldBytes> LoadBytes() const override {
    ABSL_ASSIGN_OR_RETURN(HeldBytes held, network::LoadBytes(*integers_));
    const std::vector<int32_t>& taken = centering_.taken;
    if (absl::c_all_of(taken, [](int32_t number) { return number == 0; })) return held;
    auto centered = std::make_shared<std::vector<int8_t>>(held.values.begin(), held.values.end());
    int64_t inner = static_cast<int64_t>(centered->size());  // neighbours that lose the same
    if (taken.size() > 1) {
      inner = 1;
      for (size_t d = centering_.axis + 1; d < integers_->dims.size(); ++d)
        inner *= integers_->dims[d];
    }
    for (size_t i = 0; i < centered->size(); ++i) {  // modulo 256, as u8 and s8 are the same bytes
      const int32_t less = taken[i / inner % taken.size()];
      (*centered)[i] = static_cast<int8_t>((*centered)[i] - less);
    }
    return HeldBytes{*centered, centered};
  }

 private:
  const ConstantPtr integers_;
  const Centering centering_;
};

// Integers of few bits less any of their zero points are s8. nullopt: they are of more.
std::optional<Centering> CenteringOfFewBits(const network::Quantized& quantized) {
  const SmallType small = quantized.integers->small;
  if (!IsSmallInteger(small)) return std::nullopt;
  Centering centering = {.axis = quantized.axis};
  for (const network::QuantizationParams& params : quantized.params) {
    const auto zero_point = static_cast<float>(params.zero_point);
    if (zero_point < LeastOf(small) || zero_point > LargestOf(small)) return std::nullopt;
    centering.taken.push_back(params.zero_point);
  }
  return centering;
}

// nullopt if they are of more than 8 bits, or have several zero points, or scales that differ along
// another dimension than the outputs.
std::optional<Centering> CenteringOf(const network::Quantized& quantized, int output_axis) {
  const DataType type = quantized.integers->integers;
  if (!IsByte(type)) return std::nullopt;
  if (quantized.params.size() > 1 && quantized.axis != output_axis) return std::nullopt;
  if (std::optional<Centering> of_few = CenteringOfFewBits(quantized)) return of_few;
  const network::QuantizationParams& first = quantized.params[0];
  for (const network::QuantizationParams& params : quantized.params) {
    if (params.zero_point != first.zero_point || !network::HoldsZeroPoint(type, params))
      return std::nullopt;
  }
  const int32_t taken = type == DataType::kU8 ? 128 : 0;
  return Centering{.taken = {taken}, .zero_point = first.zero_point - taken};
}

}  // namespace

Weights WeightsOf(const ConstantPtr& constant, int output_axis) {
  Weights weights = WeightsOf(constant);
  if (constant->quantized == nullptr) return weights;
  const network::Quantized& quantized = *constant->quantized;
  const std::optional<Centering> centering = CenteringOf(quantized, output_axis);
  if (!centering) return weights;
  weights.data = {};
  weights.owner = nullptr;
  weights.stored = nullptr;
  weights.s8 = std::make_shared<const CenteredIntegers>(quantized.integers, *centering);
  weights.zero_point = centering->zero_point;
  const size_t outputs = constant->dims[output_axis];
  for (size_t o = 0; o < outputs; ++o)
    weights.scale.push_back(quantized.params[quantized.params.size() == 1 ? 0 : o].scale);
  return weights;
}

Weights WeightsOf(const ConstantPtr& constant) {
  Weights weights;
  weights.key = constant->name;
  weights.dims = constant->dims;
  weights.data = constant->floats;
  weights.owner = constant->owner;
  weights.stored = constant->stored;
  return weights;
}

absl::StatusOr<std::vector<float>> ReadVector(const NodeContext& context, int i, int64_t length) {
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr vector, context.Floats(i));
  if (vector->dims != Dims{length}) {
    return context.node.Invalid("input ", i, " has dims ", DimsToString(vector->dims),
                                ", expected [", length, "]");
  }
  return std::vector<float>(vector->floats.begin(), vector->floats.end());
}

absl::StatusOr<ValueId> EmitScaleShift(NodeContext& context, ValueId src, std::vector<float> scale,
                                       std::vector<float> shift, absl::string_view suffix) {
  const Dims dims = context.value(src).dims;
  if (dims.size() < 2 || dims.size() > 5) {
    return context.node.Unimplemented("scales per channel of rank ", dims.size(),
                                      "; supported are 2 to 5");
  }
  const bool flat = dims.size() == 2;
  Dims spatial_dims = dims;
  if (flat) spatial_dims.push_back(1);
  const size_t spatial_rank = spatial_dims.size() - 2;

  network::Convolution convolution;
  convolution.groups = dims[1];
  Dims weights_dims(spatial_dims.size(), 1);
  weights_dims[0] = dims[1];
  convolution.weights = WeightsOf(MakeFloats(absl::StrCat(context.output_name(), suffix),
                                             std::move(weights_dims), std::move(scale)));
  convolution.bias = std::move(shift);
  convolution.strides.assign(spatial_rank, 1);
  convolution.dilations.assign(spatial_rank, 0);
  convolution.padding_left.assign(spatial_rank, 0);
  convolution.padding_right.assign(spatial_rank, 0);
  if (!flat) return context.Emit(std::move(convolution), {src}, dims, suffix);
  ABSL_ASSIGN_OR_RETURN(const ValueId spatial, context.EmitReshape(src, spatial_dims, "/spatial"));
  ABSL_ASSIGN_OR_RETURN(const ValueId scaled,
                        context.Emit(std::move(convolution), {spatial}, spatial_dims, "/scaled"));
  return context.Emit(network::Reshape{}, {scaled}, dims, suffix);
}

absl::Status FinishScaleShift(NodeContext& context, ValueId src, std::vector<float> scale,
                              std::vector<float> shift) {
  return context.SetOutput(EmitScaleShift(context, src, std::move(scale), std::move(shift)));
}

}  // namespace tilewire::reader
