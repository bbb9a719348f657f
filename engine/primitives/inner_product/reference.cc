// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts; f32 products are added in the order of channel, then
// spatial index; sums of integers are exact, modulo 2^32.
#include "engine/base/status_macros.h"
#include "engine/kernels/tiles/scalar_epilogue.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/inner_product/implementations.h"
#include "engine/primitives/reference_primitive.h"

namespace tilewire::inner_product {
namespace {

// Immutable.
class Formula {
 public:
  explicit Formula(const InnerProductDesc& desc)
      : image_(desc.src.dims()),
        src_type_(desc.src.data_type()),
        src_(desc.src),
        weights_(desc.weights) {
    image_[0] = 1;
  }

  float Sum(const ReferencePiece& piece, int64_t n, int64_t oc) const {
    switch (src_type_) {
      case DataType::kU8:
        return static_cast<int32_t>(Accumulate<uint8_t, int8_t, uint32_t>(piece, n, oc));
      case DataType::kS8:
        return static_cast<int32_t>(Accumulate<int8_t, int8_t, uint32_t>(piece, n, oc));
      default:
        return Accumulate<float, float, float>(piece, n, oc);
    }
  }

 private:
  template <typename Src, typename Weights, typename Result>
  Result Accumulate(const ReferencePiece& piece, int64_t n, int64_t oc) const {
    const Src* src = piece.Get<const Src>(kArgSrc) + src_.At(0, n);
    const Weights* weights = piece.Get<const Weights>(kArgWeights) + weights_.At(0, oc);
    Result sum = 0;
    ForEachOperation(image_, [&](const Dims& index) {
      sum += src[src_.Offset(index)] * weights[weights_.Offset(index)];
    });
    return sum;
  }

  Dims image_;  // the dims of one image: src's, with batch 1
  const DataType src_type_;
  const SeparableOffsets src_, weights_;
};

}  // namespace

absl::StatusOr<InnerProductDesc> ResolveReference(const Request<InnerProductDesc>& request) {
  const InnerProductDesc& desc = request.desc;
  ABSL_RETURN_IF_ERROR(IsInteger(desc) ? RequireForwardInteger(desc)
                                       : RequireForwardF32(desc, request.attributes));
  return WithPlainTensors(desc);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(
    const Request<InnerProductDesc>& request) {
  const InnerProductDesc& desc = request.desc;
  const ScalarEpilogue epilogue{request.attributes, desc.bias.data_type(), desc.dst.data_type()};
  const auto compute = [formula = Formula(desc), epilogue, has_bias = !desc.bias.IsZero(),
                        bias = SeparableOffsets(desc.bias),
                        dst = SeparableOffsets(desc.dst)](const ReferencePiece& piece) {
    piece.ForEach([&](const Dims& index) {
      const int64_t n = index[0], oc = index[1];
      epilogue.Store(formula.Sum(piece, n, oc), oc, piece.Find(kArgBias),
                     has_bias ? bias.Offset({oc}) : 0, piece.Find(kArgDst), dst.Offset(index));
    });
  };
  return CreateReferencePrimitive(InfoOf(request),
                                  {desc.dst.dims(), LinesAlong(desc.src.dims(), 0)}, compute);
}

}  // namespace tilewire::inner_product
