// SPDX-License-Identifier: Apache-2.0
#include "engine/lowering/bands/row_window.h"

#include <algorithm>
#include <variant>

#include "engine/base/checked_math.h"

namespace tilewire::lowering {
namespace {

constexpr int kHeight = 2;  // of tensors of images

// The window of a convolution or deconvolution.
template <typename Desc>
RowWindow WeightedWindow(const Desc& desc, const Primitive& whole) {
  const MemoryDesc& weights = whole.Desc(kArgWeights);
  return {.in = whole.Desc(kArgSrc).dim(kHeight),
          .out = whole.Desc(kArgDst).dim(kHeight),
          .span = (weights.dim(weights.rank() - 2) - 1) * (desc.dilations[0] + 1) + 1,
          .stride = desc.strides[0],
          .padding = desc.padding_left[0],
          .spreads = std::is_same_v<Desc, DeconvolutionDesc>};
}

Reach GatheredReach(const RowWindow& window, const Range& dst) {
  const int64_t first = dst.begin * window.stride - window.padding;
  const int64_t end = (dst.begin + dst.size - 1) * window.stride - window.padding + window.span;
  Reach reach;
  reach.src.begin = std::max<int64_t>(first, 0);
  reach.src.size = std::min(end, window.in) - reach.src.begin;
  reach.before = reach.src.begin - first;
  reach.after = std::max<int64_t>(end - window.in, 0);
  return reach;
}

Reach SpreadReach(const RowWindow& window, const Range& dst) {
  // From here on, results are counted from the first one that row 0 of the source reaches.
  const int64_t begin = dst.begin + window.padding, end = begin + dst.size;
  const int64_t first = std::max<int64_t>(begin - window.span + 1, 0);
  Reach reach;
  reach.src.begin = DivUp(first, window.stride);
  reach.src.size = std::min(DivUp(end, window.stride), window.in) - reach.src.begin;
  reach.before = begin - reach.src.begin * window.stride;
  reach.after = (reach.src.begin + reach.src.size - 1) * window.stride + window.span - end;
  return reach;
}

}  // namespace

bool HasRowWindow(const PrimitiveRequest& request) {
  if (std::holds_alternative<DeconvolutionDesc>(request.desc)) {
    const RowWindow window = WindowOf(request);
    return window.span >= window.stride;  // else nothing reaches some rows of the result
  }
  return std::holds_alternative<ConvolutionDesc>(request.desc) ||
         std::holds_alternative<PoolingDesc>(request.desc);
}

RowWindow WindowOf(const PrimitiveRequest& request) {
  const Primitive& whole = *request.whole;
  if (const auto* pooling = std::get_if<PoolingDesc>(&request.desc)) {
    return {.in = whole.Desc(kArgSrc).dim(kHeight),
            .out = whole.Desc(kArgDst).dim(kHeight),
            .span = pooling->kernel[0],
            .stride = pooling->strides[0],
            .padding = pooling->padding_left[0]};
  }
  if (const auto* deconvolution = std::get_if<DeconvolutionDesc>(&request.desc))
    return WeightedWindow(*deconvolution, whole);
  return WeightedWindow(std::get<ConvolutionDesc>(request.desc), whole);
}

Reach ReachOf(const RowWindow& window, const Range& dst) {
  return window.spreads ? SpreadReach(window, dst) : GatheredReach(window, dst);
}

}  // namespace tilewire::lowering
