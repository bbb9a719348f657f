// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/operations/normalized_sum.h"
#include "engine/lowering/plan/source_layouts.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire::lowering {
namespace {

// How many of the first terms their steps have added up, in the place of the first one.
size_t AddedTerms(OperationContext& context) {
  const std::vector<ValueId>& terms = context.srcs();
  size_t count = 1;
  while (count < terms.size() && context.plan().IsAdded(terms[count])) ++count;
  return count;
}

// Over the first source where that is dead.
Place PlaceOfTerms(const std::vector<Place>& sources, const MemoryDesc& desc, PlanBuilder& plan) {
  const auto overlaps = [&](const Place& source) {
    return plan.MayOverlap(source.buffer, sources[0].buffer);
  };
  const bool in_place = runtime::SameMemory(sources[0].desc, desc) &&
                        std::none_of(sources.begin() + 1, sources.end(), overlaps) &&
                        plan.MayOverwrite(sources[0]);
  return in_place ? Place{sources[0].buffer, desc} : plan.NewPlace(desc);
}

}  // namespace

absl::Status LowerSum(const network::Sum&, OperationContext& context) {
  const size_t added = AddedTerms(context);
  if (added == context.srcs().size() && added > 1) {
    context.ConsumeSources();
    return context.BindResult(context.Home(context.src()));
  }
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc layout, LayoutOfSources(context));
  ABSL_ASSIGN_OR_RETURN(std::vector<Place> sources, SourcesInLayout(layout, context));
  sources.erase(sources.begin() + 1, sources.begin() + static_cast<int64_t>(added));
  ABSL_ASSIGN_OR_RETURN(const bool normalized, LowerNormalizedSum(sources, context));
  if (normalized) return absl::OkStatus();
  context.ConsumeSources();
  ABSL_ASSIGN_OR_RETURN(auto primitive,
                        context.Create(SumDesc{.scales = std::vector<float>(sources.size(), 1.0f),
                                               .srcs = DescsOf(sources),
                                               .dst = layout}));
  const Place dst = PlaceOfTerms(sources, primitive->Desc(kArgDst), context.plan());
  Bindings bindings = MultipleSources(sources);
  bindings.push_back({kArgDst, dst.buffer});
  context.Emit(std::move(primitive), std::move(bindings));
  return context.BindResult(dst);
}

}  // namespace tilewire::lowering
