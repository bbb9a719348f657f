// SPDX-License-Identifier: Apache-2.0
#include "engine/network/attention.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/plan/strided_view.h"

namespace tilewire::lowering {
namespace {

absl::StatusOr<network::HeadFold> FoldOf(const OperationContext& context) {
  std::vector<Dims> dims;
  std::string text;
  for (ValueId src : context.srcs()) {
    dims.push_back(context.value(src).dims);
    absl::StrAppend(&text, " ", DimsToString(dims.back()));
  }
  std::optional<network::HeadFold> fold = network::FoldHeads(dims);
  if (fold) return *std::move(fold);
  return InvalidArgument("attention of sources that do not fit:", text);
}

// The batches of heads of queries, keys, values or the result.
absl::StatusOr<MemoryDesc> Folded(const MemoryDesc& desc, const network::HeadFold& fold) {
  const int rank = desc.rank();
  return StridedView(desc, {fold.batches, fold.heads, desc.dim(rank - 2), desc.dim(rank - 1)});
}

absl::StatusOr<MemoryDesc> FoldedSource(const MemoryDesc& desc, int i,
                                        const network::HeadFold& fold) {
  if (i >= AttentionDesc::kFirstMask)
    return StridedView(desc, fold.masks[i - AttentionDesc::kFirstMask]);
  ABSL_ASSIGN_OR_RETURN(MemoryDesc folded, Folded(desc, fold));
  if (i != AttentionDesc::kKeys) return folded;
  return folded.Permuted({0, 1, 3, 2});  // come turned
}

// A source where it lies if its strides can be followed, else in row-major order.
absl::StatusOr<Place> Operand(OperationContext& context, int i, const network::HeadFold& fold) {
  ABSL_ASSIGN_OR_RETURN(Place place, context.Home(context.src(i)));
  absl::StatusOr<MemoryDesc> desc = FoldedSource(place.desc, i, fold);
  if (!desc.ok()) {
    ABSL_ASSIGN_OR_RETURN(place, context.RowMajor(context.src(i)));
    desc = FoldedSource(place.desc, i, fold);
  }
  ABSL_RETURN_IF_ERROR(desc.status());
  return Place{place.buffer, *std::move(desc)};
}

// The result's layout, as its reader would have it if it can be written there.
absl::StatusOr<MemoryDesc> FoldableResult(const OperationContext& context,
                                          const network::HeadFold& fold) {
  ABSL_ASSIGN_OR_RETURN(MemoryDesc result, ResultDesc(context));
  if (Folded(result, fold).ok()) return result;
  return context.RowMajorDesc(context.dst());
}

}  // namespace

absl::Status LowerAttention(const network::Attention& attention, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const network::HeadFold fold, FoldOf(context));
  AttentionDesc desc;
  desc.scale = attention.scale;
  std::vector<Place> sources;
  for (int i = 0; i < static_cast<int>(context.srcs().size()); ++i) {
    ABSL_ASSIGN_OR_RETURN(Place source, Operand(context, i, fold));
    desc.srcs.push_back(source.desc);
    sources.push_back(std::move(source));
  }
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc result, FoldableResult(context, fold));
  ABSL_ASSIGN_OR_RETURN(desc.dst, Folded(result, fold));
  return context.EmitTo(result, context.Create(desc), MultipleSources(sources));
}

}  // namespace tilewire::lowering
