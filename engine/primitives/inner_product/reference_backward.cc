// SPDX-License-Identifier: Apache-2.0
//
// The executable specification of the gradients: inner_product.h's formulas as plain loops, any
// layout, one element of a gradient after the other. Sums are in double and are rounded once.
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/inner_product/implementations.h"
#include "engine/primitives/reference_primitive.h"
#include "engine/primitives/weighted_gradients.h"

namespace tilewire::inner_product {
namespace {

// Immutable.
class Gradient {
 public:
  Gradient(const InnerProductDesc& desc, const PostOps& post_ops)
      : batch_(desc.dst.dim(0)),
        outputs_(desc.dst.dim(1)),
        end_(post_ops),
        masks_(post_ops.Mask() != nullptr),
        has_bias_(!desc.bias.IsZero()),
        src_(desc.src),
        weights_(desc.weights),
        bias_(desc.bias),
        dst_(desc.dst) {}

  // The element of diff_src at an index.
  void RunSrc(const ReferencePiece& piece, const Dims& index) const {
    Dims from = index;
    double sum = 0;
    ForEachOperation(outputs_, [&](int64_t o) {
      from[0] = o;
      sum += static_cast<double>(DiffDst(piece, index[0], o)) *
             piece.Get<const float>(kArgWeights)[weights_.Offset(from)];
    });
    const int64_t at = src_.Offset(index);
    float& gradient = piece.Get<float>(kArgDiffSrc)[at];
    const float* const mask = masks_ ? piece.Get<const float>(kArgSrc1) + at : nullptr;
    gradient = end_.Apply(static_cast<float>(sum), gradient, mask);
  }

  // The element of diff_weights at an index, and with an output's first that of its bias.
  void RunWeights(const ReferencePiece& piece, const Dims& index) const {
    Dims from = index;
    bool is_first = has_bias_;
    for (size_t d = 1; d < index.size(); ++d) is_first &= index[d] == 0;
    double sum = 0, bias_sum = 0;
    ForEachOperation(batch_, [&](int64_t n) {
      from[0] = n;
      const double gradient = DiffDst(piece, n, index[0]);
      sum += gradient * piece.Get<const float>(kArgSrc)[src_.Offset(from)];
      bias_sum += gradient;
    });
    float& gradient = piece.Get<float>(kArgDiffWeights)[weights_.Offset(index)];
    gradient = end_.Apply(static_cast<float>(sum), gradient, nullptr);
    if (!is_first) return;
    float& bias = piece.Get<float>(kArgDiffBias)[bias_.Offset({index[0]})];
    bias = end_.Apply(static_cast<float>(bias_sum), bias, nullptr);
  }

 private:
  float DiffDst(const ReferencePiece& piece, int64_t n, int64_t o) const {
    return piece.Get<const float>(kArgDiffDst)[dst_.base() + dst_.At(0, n) + dst_.At(1, o)];
  }

  const int64_t batch_, outputs_;
  const GradientEnd end_;
  const bool masks_, has_bias_;
  const SeparableOffsets src_, weights_, bias_, dst_;
};

}  // namespace

absl::StatusOr<InnerProductDesc> ResolveReferenceBackward(
    const Request<InnerProductDesc>& request) {
  return ResolvePlainF32(request);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReferenceBackward(
    const Request<InnerProductDesc>& request) {
  const InnerProductDesc& desc = request.desc;
  Gradient gradient(desc, request.attributes.post_ops);
  if (desc.prop_kind == PropKind::kBackwardData) {
    return CreateReferencePrimitive(
        GradientInfoOf(request), {desc.src.dims(), {desc.dst.dim(1)}},
        [gradient = std::move(gradient)](const ReferencePiece& piece) {
          piece.ForEach([&](const Dims& index) { gradient.RunSrc(piece, index); });
        });
  }
  return CreateReferencePrimitive(
      GradientInfoOf(request), {desc.weights.dims(), {desc.dst.dim(0)}},
      [gradient = std::move(gradient)](const ReferencePiece& piece) {
        piece.ForEach([&](const Dims& index) { gradient.RunWeights(piece, index); });
      });
}

}  // namespace tilewire::inner_product
