// SPDX-License-Identifier: Apache-2.0
//
// The executable specification of backward: any layouts, one element after the other, in double.
// The sums of squares are formed again for each neighbour.
#include <algorithm>
#include <cmath>

#include "engine/memory/separable_offsets.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/gradients.h"
#include "engine/primitives/lrn/implementations.h"
#include "engine/primitives/reference_primitive.h"

namespace tilewire::lrn {
namespace {

// Immutable.
class Gradient {
 public:
  explicit Gradient(const LrnDesc& desc)
      : desc_(desc), src_(desc.src), diff_src_(desc.diff_src), diff_dst_(desc.diff_dst) {}

  void RunElement(const ReferencePiece& piece, const Dims& index) const {
    const auto* src = piece.Get<const float>(kArgSrc);
    const auto* diff_dst = piece.Get<const float>(kArgDiffDst);
    double sum = 0;
    ForEachNeighbour(index, [&](const Dims& at) {
      sum += diff_dst[diff_dst_.Offset(at)] * static_cast<double>(src[src_.Offset(at)]) *
             std::pow(BaseOf(src, at), -desc_.beta - 1.0);
    });
    const double direct =
        diff_dst[diff_dst_.Offset(index)] * std::pow(BaseOf(src, index), -1.0 * desc_.beta);
    const double factor = 2.0 * desc_.beta * ScaleOf(desc_);
    piece.Get<float>(kArgDiffSrc)[diff_src_.Offset(index)] =
        static_cast<float>(direct - factor * src[src_.Offset(index)] * sum);
  }

 private:
  // Calls visit(index) for the element itself and all near it.
  template <typename Visit>
  void ForEachNeighbour(const Dims& index, Visit visit) const {
    const bool across = desc_.algorithm == LrnAlgorithm::kAcrossChannels;
    const int first = across ? 1 : 2, last = across ? 2 : desc_.src.rank();
    Dims count(index.size(), 1), begin = index;
    for (int d = first; d < last; ++d) {
      begin[d] = std::max<int64_t>(index[d] - ReachOf(desc_), 0);
      count[d] = std::min(index[d] + ReachOf(desc_) + 1, desc_.src.dim(d)) - begin[d];
    }
    ForEachOperation(count, [&](Dims at) {
      for (size_t d = 0; d < at.size(); ++d) at[d] += begin[d];
      visit(static_cast<const Dims&>(at));
    });
  }

  double BaseOf(const float* src, const Dims& index) const {
    double squares = 0;
    ForEachNeighbour(index, [&](const Dims& at) {
      const double value = src[src_.Offset(at)];
      squares += value * value;
    });
    return desc_.k + ScaleOf(desc_) * squares;
  }

  const LrnDesc desc_;
  const SeparableOffsets src_, diff_src_, diff_dst_;
};

}  // namespace

PrimitiveInfo BackwardInfoOf(const Request<LrnDesc>& request) {
  const LrnDesc& desc = request.desc;
  return BasicInfo(
      request, {{kArgSrc, desc.src}, {kArgDiffDst, desc.diff_dst}, {kArgDiffSrc, desc.diff_src}});
}

absl::StatusOr<LrnDesc> ResolveReferenceBackward(const Request<LrnDesc>& request) {
  return ResolveF32Gradients(request, request.desc.src);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReferenceBackward(
    const Request<LrnDesc>& request) {
  const LrnDesc& desc = request.desc;
  const auto compute = [gradient = Gradient(desc)](const ReferencePiece& piece) {
    piece.ForEach([&](const Dims& index) { gradient.RunElement(piece, index); });
  };
  const int along = desc.algorithm == LrnAlgorithm::kAcrossChannels ? 1 : desc.src.rank() - 2;
  const Dims windows(2 * along, desc.local_size);  // each neighbour has a window of its own
  return CreateReferencePrimitive(BackwardInfoOf(request), {desc.src.dims(), windows}, compute);
}

}  // namespace tilewire::lrn
