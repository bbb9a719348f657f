// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one element of dst after the other.
#include "engine/base/status_macros.h"
#include "engine/primitives/convert/conversion.h"
#include "engine/primitives/convert/implementations.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reference_primitive.h"

namespace tilewire::convert {

absl::StatusOr<ConvertDesc> ResolveReference(const Request<ConvertDesc>& request) {
  const ConvertDesc& desc = request.desc;
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(request.attributes));
  if (!desc.dst.IsAny()) return desc;
  return WithDst(desc, desc.src.WithDataType(desc.dst.data_type()));
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const Request<ConvertDesc>& request) {
  const ConvertDesc& desc = request.desc;
  const auto compute = [desc, convert = ConversionChain(TypesOf(desc)),
                        src_size = SizeOf(desc.src.data_type()),
                        dst_size = SizeOf(desc.dst.data_type())](const ReferencePiece& piece) {
    const auto* src = piece.Get<const std::byte>(kArgSrc);
    auto* dst = piece.Get<std::byte>(kArgDst);
    piece.ForEach([&](const Dims& index) {
      convert.Run(src + desc.src.Offset(index) * src_size, 1,
                  dst + desc.dst.Offset(index) * dst_size);
    });
  };
  return CreateReferencePrimitive(InfoOf(request), {desc.dst.dims()}, compute);
}

}  // namespace tilewire::convert
