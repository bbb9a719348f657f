// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <initializer_list>

#include "absl/algorithm/container.h"
#include "engine/network/network_check.h"

namespace tilewire::network {
namespace {

// Lists of a window have an entry per spatial dimension of src and dst.
bool AreSpatial(const Tensors& tensors, std::initializer_list<const Dims*> lists) {
  const size_t rank = tensors.src().size();
  return rank >= 2 && tensors.result().size() == rank &&
         absl::c_all_of(lists, [&](const Dims* list) { return list->size() == rank - 2; });
}

template <typename Convolution>
bool HasWindow(const Convolution& c, const Tensors& tensors) {
  return tensors.src().size() >= 3 &&
         AreSpatial(tensors, {&c.strides, &c.dilations, &c.padding_left, &c.padding_right});
}

// As many elements as the dims say, a factor per output, or none.
bool HasElements(const Weights& weights) {
  const bool is_loaded = weights.stored != nullptr || weights.s8 != nullptr;
  const bool has_all = static_cast<int64_t>(weights.data.size()) == ElementCount(weights.dims);
  return (is_loaded || has_all) &&
         (weights.scale.empty() || static_cast<int64_t>(weights.scale.size()) == weights.dims[0]);
}

bool AreChannels(const Weights& weights, int64_t groups, int64_t inputs, int64_t outputs) {
  return groups >= 1 && weights.dims[0] == outputs && outputs % groups == 0 &&
         weights.dims[1] * groups == inputs;
}

bool IsBias(const std::vector<float>& bias, int64_t outputs) {
  return bias.empty() || static_cast<int64_t>(bias.size()) == outputs;
}

// Steps on a result of `dims`: addends of the same dims, slopes of its channels.
bool AreSteps(const std::vector<FusedStep>& steps, const Dims& dims, const Network& network) {
  return absl::c_all_of(steps, [&](const FusedStep& step) {
    switch (step.kind) {
      case FusedStep::Kind::kActivation:
        return true;
      case FusedStep::Kind::kSum:
        return network.values[step.addend].dims == dims;
      case FusedStep::Kind::kPRelu:
        return dims.size() >= 2 && static_cast<int64_t>(step.slopes.size()) == dims[1];
    }
    return false;
  });
}

// Whatever the convolution is followed by; `computed` are the dims of its own result.
template <typename Convolution>
absl::string_view LackOfConvolution(const Convolution& c, const Tensors& tensors,
                                    const Dims& computed) {
  if (!HasWindow(c, tensors)) return "a stride, dilation and padding per spatial dimension";
  if (computed.size() != tensors.src().size() || computed[0] != tensors.src()[0])
    return "a result of the same rank and batch";
  if (c.weights.dims.size() != computed.size() ||
      !AreChannels(c.weights, c.groups, tensors.src()[1], computed[1]))
    return "weights of its channels";
  if (!HasElements(c.weights)) return "as many weights as their dims say, and a factor per output";
  if (!IsBias(c.bias, computed[1])) return "a bias per output";
  return AreSteps(c.fused, computed, tensors.network) ? "" : "fused steps of its result's dims";
}

// A scale and a zero point.
bool IsRange(const Dims& dims) { return dims == Dims{2}; }

template <typename Product>
absl::string_view LackOfProduct(const Product& product, const Tensors& tensors, int64_t inputs) {
  const Dims& result = tensors.result();
  if (product.weights.dims.size() != 2 || product.weights.dims[1] != inputs ||
      product.weights.dims[0] != result.back())
    return "weights of its inputs and outputs";
  if (!HasElements(product.weights))
    return "as many weights as their dims say, and a factor per output";
  if (!IsBias(product.bias, result.back())) return "a bias per output";
  return AreSteps(product.fused, result, tensors.network) ? "" : "fused steps of its result's dims";
}

}  // namespace

absl::string_view Lack(const Convolution& convolution, const Tensors& tensors) {
  const absl::string_view lack = LackOfConvolution(
      convolution, tensors, convolution.pooling ? convolution.pooling->src : tensors.result());
  if (!lack.empty() || !convolution.pooling) return lack;
  const Dims &whole = convolution.pooling->src, &half = tensors.result();
  const bool halves = whole.size() == 4 && half[0] == whole[0] && half[1] == whole[1] &&
                      half[2] == whole[2] / 2 && half[3] == whole[3] / 2;
  return halves ? "" : "a result of half the height and width";
}

absl::string_view Lack(const ComputedConvolution& convolution, const Tensors& tensors) {
  if (!HasWindow(convolution, tensors))
    return "a stride, dilation and padding per spatial dimension";
  const Dims &src = tensors.src(), &weights = tensors.src(1), &result = tensors.result();
  const int64_t groups = convolution.groups;
  if (weights.size() != src.size() || groups < 1 || weights[0] != result[1] ||
      weights[0] % groups != 0 || weights[1] * groups != src[1] || result[0] != src[0])
    return "weights of its channels";
  const bool has_bias = tensors.srcs.size() == 3;
  return !has_bias || tensors.src(2) == Dims{result[1]} ? "" : "a bias per output";
}

absl::string_view Lack(const Deconvolution& deconvolution, const Tensors& tensors) {
  return LackOfConvolution(deconvolution, tensors, tensors.result());
}

absl::string_view Lack(const ComputedDeconvolution& deconvolution, const Tensors& tensors) {
  const Tensors convolution{{tensors.dst, tensors.srcs[1]}, tensors.srcs[0], tensors.network};
  const absl::string_view lack = Lack(deconvolution.convolution, convolution);
  if (!lack.empty()) return lack;
  const bool has_bias = tensors.srcs.size() == 3;
  return !has_bias || tensors.src(2) == Dims{tensors.result()[1]} ? "" : "a bias per output";
}

absl::string_view Lack(const DynamicConvolution& convolution, const Tensors& tensors) {
  if (!IsRange(tensors.src(1))) return "a range";
  return LackOfConvolution(convolution, tensors, tensors.result());
}

absl::string_view Lack(const InnerProduct& product, const Tensors& tensors) {
  const Dims &src = tensors.src(), &result = tensors.result();
  if (src.size() < 2 || result.size() != 2 || result[0] != src[0]) return "rows of its result";
  return LackOfProduct(product, tensors, *ElementCount(Dims(src.begin() + 1, src.end())));
}

absl::string_view Lack(const DynamicInnerProduct& product, const Tensors& tensors) {
  const Dims &src = tensors.src(), &result = tensors.result();
  if (!IsRange(tensors.src(1))) return "a range";
  const int64_t inputs = src.back(), outputs = result.back();
  if (inputs < 1 || outputs < 1 || *ElementCount(src) / inputs != *ElementCount(result) / outputs)
    return "rows of its result";
  return LackOfProduct(product, tensors, inputs);
}

absl::string_view Lack(const Pooling& pooling, const Tensors& tensors) {
  const bool fits = AreSpatial(
      tensors, {&pooling.kernel, &pooling.strides, &pooling.padding_left, &pooling.padding_right});
  if (!fits) return "a size, stride and padding per spatial dimension";
  if (!pooling.saves_places) return "";
  if (pooling.algorithm != Pooling::Algorithm::kMax) return "a maximum, which alone has places";
  const Value& places = *tensors.more_results[0];
  return places.type == DataType::kS32 && places.dims == tensors.result() ? ""
                                                                          : "a place per result";
}

absl::string_view Lack(const MaxWindow& window, const Tensors& tensors) {
  const bool fits = AreSpatial(
      tensors, {&window.kernel, &window.strides, &window.dilations, &window.padding_left});
  return fits ? "" : "a size, stride, dilation and padding per spatial dimension";
}

absl::string_view Lack(const Rnn& rnn, const Tensors& tensors) {
  constexpr size_t kNeeded = 3;  // the layer and its two weights
  if (rnn.roles.size() != tensors.srcs.size()) return "a role for each source";
  std::vector<Rnn::Role> roles = rnn.roles;
  for (const auto& [role, weights] : rnn.known) {
    if (weights.dims.empty() || !HasElements(weights))
      return "as many weights as their dims say, and a factor per output";
    roles.push_back(role);
  }
  absl::c_sort(roles);
  if (std::adjacent_find(roles.begin(), roles.end()) != roles.end()) return "one source per role";
  for (size_t i = 0; i < kNeeded; ++i) {
    if (roles.size() <= i || roles[i] != static_cast<Rnn::Role>(i)) return "a layer and weights";
  }
  const Dims& result = tensors.result();
  const int64_t more = rnn.gives_iter + rnn.gives_iter_c;
  const bool fits = result.size() == 3 && result[0] > more &&
                    result[2] % functions::DirectionsOf(rnn.direction) == 0;
  return fits ? "" : "steps of states as its result";
}

}  // namespace tilewire::network
