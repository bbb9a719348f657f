// SPDX-License-Identifier: Apache-2.0
//
// The executable specification of the gradients: matmul.h's formulas as plain loops, any layout,
// one element of a gradient after the other. Sums are in double and are rounded once.
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/matmul/implementations.h"
#include "engine/primitives/reference_primitive.h"
#include "engine/primitives/weighted_gradients.h"

namespace tilewire::matmul {
namespace {

// A gradient of one side, `own`, from the other. An element of it is the sum of products over what
// dst was broadcast along, and over the dimension of dst that it lacks. Immutable.
class Gradient {
 public:
  Gradient(const MatmulDesc& desc, const PostOps& post_ops)
      : of_src_(desc.prop_kind == PropKind::kBackwardData),
        last_(desc.dst.rank() - 1),
        end_(post_ops),
        masks_(post_ops.Mask() != nullptr),
        other_dims_(of_src_ ? desc.weights.dims() : desc.src.dims()),
        own_(of_src_ ? desc.src : desc.weights),
        other_(of_src_ ? desc.weights : desc.src),
        dst_(desc.dst) {
    const MemoryDesc& own = of_src_ ? desc.src : desc.weights;
    for (int d = 0; d < last_ - 1; ++d)
      box_.push_back(desc.dst.dim(d) / std::max<int64_t>(1, own.dim(d)));
    box_.push_back(of_src_ ? desc.dst.dim(last_) : desc.dst.dim(last_ - 1));
  }

  const Dims& ProductsPerElement() const { return box_; }

  void Run(const ReferencePiece& piece) const {
    float* const gradients = piece.Get<float>(of_src_ ? kArgDiffSrc : kArgDiffWeights);
    piece.ForEach([&](const Dims& index) {
      const int64_t at = own_.Offset(index);
      const float* const mask = masks_ ? piece.Get<const float>(kArgSrc1) + at : nullptr;
      gradients[at] = end_.Apply(static_cast<float>(Sum(piece, index)), gradients[at], mask);
    });
  }

 private:
  // dA[m,k] = sum of dY[m,n] B[k,n], dB[k,n] = sum of A[m,k] dY[m,n].
  double Sum(const ReferencePiece& piece, const Dims& index) const {
    const float* const other = piece.Get<const float>(of_src_ ? kArgWeights : kArgSrc);
    Dims dst = index, from = index;
    double sum = 0;
    ForEachOperation(box_, [&](const Dims& product) {
      for (int d = 0; d < last_ - 1; ++d) from[d] = dst[d] = index[d] + product[d];
      const int64_t summed = product[last_ - 1];
      dst[of_src_ ? last_ : last_ - 1] = summed;
      from[last_ - 1] = of_src_ ? index[last_] : summed;
      from[last_] = of_src_ ? summed : index[last_ - 1];
      sum += static_cast<double>(piece.Get<const float>(kArgDiffDst)[dst_.Offset(dst)]) *
             other[other_.Offset(BroadcastIndex(other_dims_, from))];
    });
    return sum;
  }

  const bool of_src_;
  const int last_;
  const GradientEnd end_;
  const bool masks_;
  const Dims other_dims_;
  const SeparableOffsets own_, other_, dst_;
  Dims box_;  // a product per index
};

}  // namespace

absl::StatusOr<MatmulDesc> ResolveReferenceBackward(const Request<MatmulDesc>& request) {
  return ResolvePlainF32(request);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReferenceBackward(
    const Request<MatmulDesc>& request) {
  const MatmulDesc& desc = request.desc;
  const bool of_src = desc.prop_kind == PropKind::kBackwardData;
  Gradient gradient(desc, request.attributes.post_ops);
  ReferenceLoop loop{(of_src ? desc.src : desc.weights).dims(), gradient.ProductsPerElement()};
  return CreateReferencePrimitive(
      GradientInfoOf(request), std::move(loop),
      [gradient = std::move(gradient)](const ReferencePiece& piece) { gradient.Run(piece); });
}

}  // namespace tilewire::matmul
