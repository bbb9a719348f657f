// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/strided_view.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire::lowering {
namespace {

// `desc` with leading dimensions of 1, or without some, up to rank 4.
absl::StatusOr<MemoryDesc> OfRank4(const MemoryDesc& desc) {
  Dims dims = desc.dims();
  while (dims.size() > 4) dims.erase(dims.begin());
  dims.insert(dims.begin(), 4 - dims.size(), 1);
  return StridedView(desc, dims);
}

// A source of the products, where it lies if its strides can be followed.
absl::StatusOr<Place> Operand(OperationContext& context, int i) {
  ABSL_ASSIGN_OR_RETURN(Place place, context.Home(context.src(i)));
  absl::StatusOr<MemoryDesc> view = OfRank4(place.desc);
  if (!view.ok()) {
    ABSL_ASSIGN_OR_RETURN(place, context.RowMajor(context.src(i)));
    view = OfRank4(place.desc);
  }
  ABSL_ASSIGN_OR_RETURN(MemoryDesc desc, std::move(view));
  if (i == AttentionDesc::kKeys) {  // come turned
    ABSL_ASSIGN_OR_RETURN(desc, desc.Permuted({0, 1, 3, 2}));
  }
  return Place{place.buffer, std::move(desc)};
}

}  // namespace

absl::Status LowerAttention(const graph::Attention& attention, OperationContext& context) {
  AttentionDesc desc;
  desc.scale = attention.scale;
  std::vector<Place> sources;
  for (int i = 0; i < static_cast<int>(context.srcs().size()); ++i) {
    ABSL_ASSIGN_OR_RETURN(Place source, Operand(context, i));
    desc.srcs.push_back(source.desc);
    sources.push_back(std::move(source));
  }
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc result, ResultDesc(context));
  ABSL_ASSIGN_OR_RETURN(desc.dst, OfRank4(result));
  ABSL_ASSIGN_OR_RETURN(auto primitive, context.Create(desc));
  context.ConsumeSources();
  const Place dst = context.plan().NewPlace(result);
  runtime::Bindings bindings = {{kArgDst, dst.buffer}};
  for (size_t i = 0; i < sources.size(); ++i)
    bindings.push_back({kArgMultipleSrc + static_cast<int>(i), sources[i].buffer});
  context.Emit(std::move(primitive), std::move(bindings));
  context.BindResult(dst);
  return absl::OkStatus();
}

}  // namespace tilewire::lowering
