// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layout, one element of dst after the other.
#include "engine/base/status_macros.h"
#include "engine/kernels/elements/element_conversion.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reference_primitive.h"
#include "engine/primitives/select/implementations.h"

namespace tilewire::select {

absl::StatusOr<SelectDesc> ResolveReference(const Request<SelectDesc>& request) {
  const SelectDesc& desc = request.desc;
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(request.attributes));
  return WithDst(desc, OrLayoutOf(desc.dst, desc.src));
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const Request<SelectDesc>& request) {
  const SelectDesc& desc = request.desc;
  std::vector<std::vector<int64_t>> sources;  // by index of dst, one list per dimension
  for (int d = 0; d < desc.dst.rank(); ++d) sources.push_back(SourceIndices(desc, d));
  const auto compute = [desc, sources](const ReferencePiece& piece) {
    const DataType type = desc.dst.data_type();
    piece.ForEach([&](const Dims& index) {
      Dims from = index;
      bool is_fill = false;
      for (int d = 0; d < desc.dst.rank(); ++d) {
        from[d] = sources[d][index[d]];
        is_fill = is_fill || from[d] == kFill;
      }
      const int64_t to = desc.dst.Offset(index);
      if (is_fill) return StoreElement(type, desc.fill, piece.Find(kArgDst), to);
      CopyElement(type, piece.Find(kArgSrc), desc.src.Offset(from), piece.Find(kArgDst), to);
    });
  };
  return CreateReferencePrimitive(InfoOf(request), {desc.dst.dims()}, compute);
}

}  // namespace tilewire::select
