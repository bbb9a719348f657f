// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one element of dst after the other, in f32.
#include "engine/base/status_macros.h"
#include "engine/kernels/scalar_epilogue.h"
#include "engine/memory/layout.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/matmul/implementations.h"
#include "engine/primitives/reference_primitive.h"

namespace tilewire::matmul {
namespace {

// Immutable.
class Formula {
 public:
  explicit Formula(const MatmulDesc& desc)
      : desc_(desc),
        k_(desc.src.dim(desc.src.rank() - 1)),
        src_(desc.src),
        weights_(desc.weights),
        bias_(desc.bias) {}

  float Value(const ReferencePiece& piece, const Dims& index) const {
    const float sum = k_ == 0 ? 0 : Sum(piece, index);
    if (desc_.bias.IsZero()) return sum;
    return sum +
           piece.Get<const float>(kArgBias)[bias_.Offset(BroadcastIndex(desc_.bias.dims(), index))];
  }

 private:
  float Sum(const ReferencePiece& piece, const Dims& index) const {
    const int last = desc_.dst.rank() - 1;
    Dims row = index, column = index;
    row[last] = column[last - 1] = 0;
    const int64_t src_offset = src_.Offset(BroadcastIndex(desc_.src.dims(), row));
    const int64_t weights_offset = weights_.Offset(BroadcastIndex(desc_.weights.dims(), column));
    float sum = 0;
    ForEachOperation(k_, [&](int64_t k) {
      sum += piece.Get<const float>(kArgSrc)[src_offset + src_.At(last, k)] *
             piece.Get<const float>(kArgWeights)[weights_offset + weights_.At(last - 1, k)];
    });
    return sum;
  }

  const MatmulDesc desc_;
  const int64_t k_;
  const SeparableOffsets src_, weights_, bias_;
};

}  // namespace

absl::StatusOr<MatmulDesc> ResolveReference(const MatmulDesc& desc, const Attributes& attributes,
                                            const ImplementationFacts&) {
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src, desc.weights, desc.bias, desc.dst));
  ABSL_RETURN_IF_ERROR(RequireNoOutputScales(attributes));
  return WithPlainTensors(desc);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const MatmulDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts) {
  const auto compute = [formula = Formula(desc), post_ops = attributes.post_ops,
                        dst = SeparableOffsets(desc.dst)](const ReferencePiece& piece) {
    piece.ForEach([&](const Dims& index) {
      float& result = piece.Get<float>(kArgDst)[dst.Offset(index)];
      result = ApplyPostOps(post_ops, formula.Value(piece, index), result);
    });
  };
  const int64_t k = desc.src.dim(desc.src.rank() - 1);
  return CreateReferencePrimitive(InfoOf(desc, attributes, facts), {desc.dst.dims(), {k}}, compute);
}

}  // namespace tilewire::matmul
