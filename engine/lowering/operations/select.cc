// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"

namespace tilewire::lowering {
namespace {

// The part of `src` that `select` takes, if that is one box of neighbouring elements.
//   kInvalidArgument  it is not one box, or the box does not end where blocks do
absl::StatusOr<MemoryDesc> ViewOf(const network::Select& select, const MemoryDesc& src) {
  Dims dims = src.dims(), offsets(dims.size(), 0);
  for (size_t d = 0; d < dims.size(); ++d) {
    if (select.from[d].empty()) continue;
    const IndexRun& run = select.from[d].front();
    if (select.from[d].size() > 1 || run.start < 0 || (run.step != 1 && run.count > 1))
      return InvalidArgument("is not one box");
    dims[d] = run.count;
    offsets[d] = run.start;
  }
  return src.SubMemory(dims, offsets);
}

// Creating the primitive takes memory for each index that a dimension's runs list: a result that no
// run could hold is refused before that.
absl::Status CheckLists(const network::Select& select, const MemoryDesc& dst,
                        const LoweringContext& settings) {
  constexpr int64_t kMostListed = int64_t{1} << 22;  // of one dimension
  if (dst.SizeBytes() > settings.max_arena_bytes) {
    return ResourceExhausted("a tensor has ", dst.SizeBytes(), " bytes; one run may use ",
                             settings.max_arena_bytes);
  }
  for (int d = 0; settings.requests_decide_sizes && d < dst.rank(); ++d) {
    if (select.from[d].empty() || dst.dim(d) <= kMostListed) continue;
    return ResourceExhausted(DimsToString(dst.dims()),
                             ": where a request decides sizes, a dimension may have ", kMostListed,
                             " elements");
  }
  return absl::OkStatus();
}

}  // namespace

// A view of the source, without a step, where the selection is a box of whole blocks; otherwise a
// step that keeps the layout of the source.
absl::Status LowerSelect(const network::Select& select, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Place src, context.Home(context.src()));
  if (absl::StatusOr<MemoryDesc> view = ViewOf(select, src.desc); view.ok()) {
    context.ConsumeSources();
    return context.BindResult(Place{src.buffer, *std::move(view)});
  }
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc dst, context.DstLike(src.desc));
  ABSL_RETURN_IF_ERROR(CheckLists(select, dst, context.settings()));
  return context.EmitUnary(context.Create(SelectDesc{src.desc, dst, select.from, select.fill}),
                           src);
}

}  // namespace tilewire::lowering
