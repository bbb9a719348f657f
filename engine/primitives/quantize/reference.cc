// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one element after the other.
#include <cmath>

#include "engine/base/status_macros.h"
#include "engine/kernels/elements/element_conversion.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/quantize/implementations.h"
#include "engine/primitives/reference_primitive.h"

namespace tilewire::quantize {
namespace {

// Saturated before it is rounded, so that NaN is the lowest integer of `type`.
float Quantized(DataType type, float x, float scale, float zero_point) {
  const bool is_unsigned = type == DataType::kU8;
  const float lowest = (is_unsigned ? 0 : -128) - zero_point;
  const float highest = (is_unsigned ? 255 : 127) - zero_point;
  const float scaled = x / scale;
  if (!(scaled > lowest)) return lowest + zero_point;
  return std::nearbyint(scaled < highest ? scaled : highest) + zero_point;
}

// The element `index` of dst, which is a zero point where it lies outside src.
void StoreByRange(const QuantizeDesc& desc, const ReferencePiece& piece, Dims index) {
  const float* range = piece.Get<const float>(kArgQuantizationRange) + desc.range.offset0();
  const int64_t place = desc.dst.Offset(index);
  const size_t first = index.size() - desc.padding_left.size();
  bool inside = true;
  for (size_t d = first; d < index.size(); ++d) {
    index[d] -= desc.padding_left[d - first];
    inside = inside && index[d] >= 0 && index[d] < desc.src.dim(static_cast<int>(d));
  }
  const float result =
      inside ? Quantized(DataType::kU8, piece.Get<const float>(kArgSrc)[desc.src.Offset(index)],
                         range[0], range[1])
             : range[1];
  StoreElement(DataType::kU8, result, piece.Find(kArgDst), place);
}

}  // namespace

absl::StatusOr<QuantizeDesc> ResolveReference(const Request<QuantizeDesc>& request) {
  const QuantizeDesc& desc = request.desc;
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(request.attributes));
  const DataType from = desc.src.data_type(), to = desc.dst.data_type();
  const bool quantizes = from == DataType::kF32 && IsByte(to);
  const bool returns = to == DataType::kF32 && (IsByte(from) || from == DataType::kF32);
  if ((!quantizes && !returns) || (!desc.range.IsZero() && to != DataType::kU8)) {
    return Unimplemented("does not go from ", DataTypeName(from), " to ", DataTypeName(to));
  }
  if (!desc.dst.IsAny()) return desc;
  if (desc.dst.dims() != desc.src.dims()) return WithDst(desc, OrPlain(desc.dst));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc like, desc.src.WithDataType(to));
  return WithDst(desc, OrLayoutOf(desc.dst, like));
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const Request<QuantizeDesc>& request) {
  const QuantizeDesc& desc = request.desc;
  const auto compute = [desc](const ReferencePiece& piece) {
    const MemoryDesc &src = desc.src, &dst = desc.dst;
    const DataType type = dst.data_type();
    piece.ForEach([&](const Dims& index) {
      if (!desc.range.IsZero()) return StoreByRange(desc, piece, index);
      const size_t i = desc.scales.size() == 1 ? 0 : index[desc.axis];
      const float x = LoadElement(src.data_type(), piece.Find(kArgSrc), src.Offset(index));
      const float scale = desc.scales[i];
      const float zero_point = static_cast<float>(desc.zero_points[i]);
      const float result = IsByte(type) ? Quantized(type, x, scale, zero_point)
                                        : (x - zero_point) * scale + ShiftOf(desc, i);
      StoreElement(type, result, piece.Find(kArgDst), dst.Offset(index));
    });
  };
  return CreateReferencePrimitive(InfoOf(request), {desc.dst.dims()}, compute);
}

}  // namespace tilewire::quantize
