// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"

namespace tilewire::lowering {
namespace {

// A reorder converts between the floating-point types in generated code, and rounds as wanted.
bool IsReorder(DataType from, DataType to) {
  const bool narrows = from == DataType::kF32 && (to == DataType::kF16 || to == DataType::kBf16);
  const bool widens = to == DataType::kF32 && (from == DataType::kF16 || from == DataType::kBf16);
  return narrows || widens;
}

}  // namespace

// Keeps the layout of its source.
absl::Status LowerConvert(const network::Convert& convert, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Place src, context.DenseHome(context.src()));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc dst, src.desc.WithDataType(context.dst_value().type));
  const bool is_reorder = convert.via.empty() && IsReorder(src.desc.data_type(), dst.data_type());
  const OpDesc desc = is_reorder ? OpDesc(ReorderDesc{src.desc, dst})
                                 : OpDesc(ConvertDesc{src.desc, dst, convert.via});
  return context.EmitUnary(context.Create(desc), src);
}

}  // namespace tilewire::lowering
