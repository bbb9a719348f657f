// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "absl/algorithm/container.h"
#include "engine/network/network_check.h"

namespace tilewire::network {
namespace {

constexpr absl::string_view kReals = "real numbers";
constexpr absl::string_view kGradientDims = "a gradient of its operand's dims";

bool IsOfReals(const Value* value) { return value->type == DataType::kF32; }

bool AreOfReals(const Tensors& tensors) {
  return IsOfReals(tensors.dst) && absl::c_all_of(tensors.srcs, IsOfReals) &&
         absl::c_all_of(tensors.more_results, IsOfReals);
}

// The gradient, the operand and the result have one shape.
absl::string_view LackOfElements(const Tensors& tensors) {
  if (tensors.src() != tensors.src(1) || tensors.src() != tensors.result()) return kGradientDims;
  return AreOfReals(tensors) ? "" : kReals;
}

// The forward operation as the check sees it: its contract holds for the gradient, too.
absl::string_view LackOfForward(const ComputedConvolution& forward, const Tensors& gradient,
                                const Value& src, const Value& weights) {
  Tensors tensors{{&src, &weights}, gradient.srcs[0], gradient.network};
  if (!gradient.more_results.empty()) tensors.srcs.push_back(gradient.more_results[0]);
  return AreOfReals(gradient) ? Lack(forward, tensors) : kReals;
}

// A factor of a product with these leading dims of the result, before its last two.
bool IsLed(const Dims& factor, const Dims& result) {
  if (factor.size() != result.size()) return false;
  for (size_t d = 0; d + 2 < result.size(); ++d) {
    if (factor[d] != result[d] && factor[d] != 1) return false;
  }
  return true;
}

}  // namespace

absl::string_view Lack(const ConvolutionDataGradient& gradient, const Tensors& tensors) {
  return LackOfForward(gradient.forward, tensors, *tensors.dst, *tensors.srcs[1]);
}

absl::string_view Lack(const ConvolutionWeightsGradient& gradient, const Tensors& tensors) {
  return LackOfForward(gradient.forward, tensors, *tensors.srcs[1], *tensors.dst);
}

absl::string_view Lack(const MatmulGradient& gradient, const Tensors& tensors) {
  const Dims& result = tensors.src();
  const Dims& first = gradient.by_second ? tensors.src(1) : tensors.result();
  const Dims& second = gradient.by_second ? tensors.result() : tensors.src(1);
  const size_t rank = result.size();
  const bool fits = rank >= 2 && IsLed(first, result) && IsLed(second, result) &&
                    first[rank - 1] == second[rank - 2] && result[rank - 2] == first[rank - 2] &&
                    result[rank - 1] == second[rank - 1];
  if (!fits) return "matrices that fit each other";
  return AreOfReals(tensors) ? "" : kReals;
}

absl::string_view Lack(const ActivationGradient& gradient, const Tensors& tensors) {
  const bool has_slope = functions::IsOfOneReal(gradient.op.function) &&
                         functions::HasSlope(gradient.op.function) &&
                         (!gradient.from_result || functions::HasResultSlope(gradient.op));
  return has_slope ? LackOfElements(tensors) : "a function that has a derivative";
}

absl::string_view Lack(const PoolingGradient& gradient, const Tensors& tensors) {
  const bool is_max = gradient.forward.algorithm == Pooling::Algorithm::kMax;
  const bool has_places = gradient.forward.saves_places && tensors.srcs.size() == 2;
  if (is_max != has_places || is_max != (tensors.srcs.size() == 2))
    return "the places of maxima, and of them alone";
  Tensors forward{{tensors.dst}, tensors.srcs[0], tensors.network};
  if (is_max) forward.more_results.push_back(tensors.srcs[1]);
  const bool are_real = IsOfReals(tensors.dst) && IsOfReals(tensors.srcs[0]);
  return are_real ? Lack(gradient.forward, forward) : kReals;
}

absl::string_view Lack(const SoftmaxGradient& gradient, const Tensors& tensors) {
  const bool is_axis = gradient.axis >= 0 && gradient.axis < static_cast<int>(tensors.src().size());
  return is_axis ? LackOfElements(tensors) : "an axis of its source";
}

absl::string_view Lack(const BatchNormalizationGradient& gradient, const Tensors& tensors) {
  const Dims& src = tensors.src(1);
  if (tensors.src() != src || tensors.result() != src || src.size() < 2 || src.size() > 5)
    return kGradientDims;
  const bool relu = gradient.forward.relu;
  if (gradient.by_addend && !relu) return "relu, without which the addend has the gradient dy";
  if (gradient.by_addend && tensors.more_results.back()->dims != src) return kGradientDims;
  if (relu && (tensors.srcs[5]->dims != src || tensors.srcs[5]->type != DataType::kU8))
    return "what relu let through";
  std::vector<const Value*> of_channels(tensors.srcs.begin() + 2, tensors.srcs.begin() + 5);
  of_channels.insert(of_channels.end(), tensors.more_results.begin(),
                     tensors.more_results.end() - (gradient.by_addend ? 1 : 0));
  const bool fits =
      absl::c_all_of(of_channels, [&](const Value* value) { return value->dims == Dims{src[1]}; });
  if (!fits) return "a number per channel for each of its parameters";
  const bool are_real = IsOfReals(tensors.dst) && absl::c_all_of(tensors.more_results, IsOfReals) &&
                        std::all_of(tensors.srcs.begin(), tensors.srcs.begin() + 5, IsOfReals);
  return are_real ? "" : kReals;
}

absl::string_view Lack(const LayerNormalizationGradient& gradient, const Tensors& tensors) {
  Dims rows = tensors.src(1);
  if (tensors.src() != rows || tensors.result() != rows || rows.size() < 2 || rows.size() > 5)
    return kGradientDims;
  const Dims row = {rows.back()};
  rows.pop_back();
  if (tensors.src(2) != rows || tensors.src(3) != rows) return "a mean and a variance per row";
  if (gradient.by_parameters && !gradient.scales)
    return "a scale, without which it has no gradient";
  const bool fits =
      (!gradient.scales || tensors.src(4) == row) &&
      absl::c_all_of(tensors.more_results, [&row](const Value* one) { return one->dims == row; });
  if (!fits) return "a scale and a shift per element of its rows";
  return AreOfReals(tensors) ? "" : kReals;
}

absl::string_view Lack(const LrnGradient&, const Tensors& tensors) {
  return tensors.src().size() >= 2 ? LackOfElements(tensors) : "channels";
}

absl::string_view Lack(const ReduceGradient&, const Tensors& tensors) {
  const Dims &reduced = tensors.src(), &src = tensors.src(1);
  if (src != tensors.result() || reduced.size() != src.size()) return kGradientDims;
  for (size_t d = 0; d < src.size(); ++d) {
    if (reduced[d] != src[d] && reduced[d] != 1) return kGradientDims;
  }
  return AreOfReals(tensors) ? "" : kReals;
}

absl::string_view Lack(const GatherGradient& gradient, const Tensors& tensors) {
  if (!AreGathered(gradient.axis, tensors.result(), tensors.src(1), tensors.src()))
    return "an index per part of its source";
  return IsOfReals(tensors.dst) && IsOfReals(tensors.srcs[0]) ? "" : kReals;
}

}  // namespace tilewire::network
