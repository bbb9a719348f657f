// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one element after the other. Squares are added in f32
// in the order of their indices; the power is taken in double.
#include <algorithm>
#include <cmath>

#include "engine/memory/separable_offsets.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/lrn/implementations.h"
#include "engine/primitives/reference_primitive.h"

namespace tilewire::lrn {
namespace {

// The squares of the neighbours of `index`, added up.
float SumOfSquares(const LrnDesc& desc, const SeparableOffsets& offsets, const float* src,
                   const Dims& index) {
  const bool across = desc.algorithm == LrnAlgorithm::kAcrossChannels;
  const int first = across ? 1 : 2, last = across ? 2 : desc.src.rank();
  Dims count(index.size(), 1), begin = index;
  for (int d = first; d < last; ++d) {  // the dimensions along which neighbours lie
    begin[d] = std::max<int64_t>(index[d] - ReachOf(desc), 0);
    count[d] = std::min(index[d] + ReachOf(desc) + 1, desc.src.dim(d)) - begin[d];
  }
  float sum = 0;
  ForEachOperation(count, [&](Dims at) {
    for (size_t d = 0; d < at.size(); ++d) at[d] += begin[d];
    const float value = src[offsets.Offset(at)];
    sum += value * value;
  });
  return sum;
}

}  // namespace

absl::StatusOr<LrnDesc> ResolveReference(const Request<LrnDesc>& request) {
  return ResolveDefaults(request.desc, request.attributes);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const Request<LrnDesc>& request) {
  const LrnDesc& desc = request.desc;
  const auto compute = [desc, src_offsets = SeparableOffsets(desc.src),
                        dst_offsets = SeparableOffsets(desc.dst)](const ReferencePiece& piece) {
    const auto* src = piece.Get<const float>(kArgSrc);
    piece.ForEach([&](const Dims& index) {
      const float sum = SumOfSquares(desc, src_offsets, src, index);
      const double base = desc.k + ScaleOf(desc) * static_cast<double>(sum);
      piece.Get<float>(kArgDst)[dst_offsets.Offset(index)] =
          static_cast<float>(src[src_offsets.Offset(index)] * std::pow(base, -desc.beta));
    });
  };
  const bool across = desc.algorithm == LrnAlgorithm::kAcrossChannels;
  const Dims window(across ? 1 : desc.src.rank() - 2, desc.local_size);
  return CreateReferencePrimitive(InfoOf(request), {desc.dst.dims(), window}, compute);
}

}  // namespace tilewire::lrn
