// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one element of dst after the other, in its type.
#include "engine/base/status_macros.h"
#include "engine/kernels/scalar_epilogue.h"
#include "engine/memory/element_types.h"
#include "engine/memory/layout.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/matmul/implementations.h"
#include "engine/primitives/matmul/typed_rows.h"
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

  // Of f32.
  float Value(const ReferencePiece& piece, const Dims& index) const {
    const float sum = Sum<float>(piece, index);
    if (desc_.bias.IsZero()) return sum;
    return sum +
           piece.Get<const float>(kArgBias)[bias_.Offset(BroadcastIndex(desc_.bias.dims(), index))];
  }

  // Of elements that T holds, without bias.
  template <typename T>
  T Sum(const ReferencePiece& piece, const Dims& index) const {
    if (k_ == 0) return 0;
    const int last = desc_.dst.rank() - 1;
    Dims row = index, column = index;
    row[last] = column[last - 1] = 0;
    const int64_t src_offset = src_.Offset(BroadcastIndex(desc_.src.dims(), row));
    const int64_t weights_offset = weights_.Offset(BroadcastIndex(desc_.weights.dims(), column));
    SumOf<T> sum = 0;
    ForEachOperation(k_, [&](int64_t k) {
      sum += static_cast<SumOf<T>>(piece.Get<const T>(kArgSrc)[src_offset + src_.At(last, k)]) *
             piece.Get<const T>(kArgWeights)[weights_offset + weights_.At(last - 1, k)];
    });
    return static_cast<T>(sum);
  }

 private:
  const MatmulDesc desc_;
  const int64_t k_;
  const SeparableOffsets src_, weights_, bias_;
};

}  // namespace

absl::StatusOr<MatmulDesc> ResolveReference(const MatmulDesc& desc, const Attributes& attributes,
                                            const ImplementationFacts&) {
  ABSL_RETURN_IF_ERROR(RequireNoOutputScales(attributes));
  if (!RequireTyped(desc, attributes).ok())
    ABSL_RETURN_IF_ERROR(RequireF32(desc.src, desc.weights, desc.bias, desc.dst));
  return WithPlainTensors(desc);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const MatmulDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts) {
  const auto typed = [formula = Formula(desc), dst = SeparableOffsets(desc.dst),
                      type = desc.dst.data_type()](const ReferencePiece& piece) {
    VisitIntegerOrDouble(type, [&](auto element) {
      using T = decltype(element);
      piece.ForEach([&](const Dims& index) {
        piece.Get<T>(kArgDst)[dst.Offset(index)] = formula.template Sum<T>(piece, index);
      });
    });
  };
  const auto compute = [formula = Formula(desc), post_ops = attributes.post_ops,
                        dst = SeparableOffsets(desc.dst)](const ReferencePiece& piece) {
    piece.ForEach([&](const Dims& index) {
      float& result = piece.Get<float>(kArgDst)[dst.Offset(index)];
      result = ApplyPostOps(post_ops, formula.Value(piece, index), result);
    });
  };
  const int64_t k = desc.src.dim(desc.src.rank() - 1);
  ReferenceLoop loop{desc.dst.dims(), {k}};
  PrimitiveInfo info = InfoOf(desc, attributes, facts);
  if (desc.dst.data_type() != DataType::kF32)
    return CreateReferencePrimitive(std::move(info), std::move(loop), typed);
  return CreateReferencePrimitive(std::move(info), std::move(loop), compute);
}

}  // namespace tilewire::matmul
