// SPDX-License-Identifier: Apache-2.0
//
// Operations that move elements and compute nothing.
#include <cstring>
#include <utility>
#include <variant>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/lowering/operation_lowering.h"
#include "engine/runtime/gather_step.h"
#include "engine/runtime/layouts.h"

namespace tilewire::runtime {

using graph::Operation;
using Place = PlanBuilder::Place;

namespace {

// The part of `src` that `select` takes, if that is one box of neighbouring elements.
//   kInvalidArgument  it is not, or it does not end where blocks do
absl::StatusOr<MemoryDesc> ViewOf(const graph::Select& select, const MemoryDesc& src) {
  Dims dims = src.dims(), offsets(dims.size(), 0);
  for (size_t d = 0; d < dims.size(); ++d) {
    if (select.from[d].empty()) continue;
    const IndexRun& run = select.from[d].front();
    if (select.from[d].size() > 1 || run.start < 0 || (run.step != 1 && run.count > 1))
      return absl::InvalidArgumentError("is not one box");
    dims[d] = run.count;
    offsets[d] = run.start;
  }
  return src.SubMemory(dims, offsets);
}

}  // namespace

// The same bytes under other dims: no step, only a reorder where the source is not row-major.
absl::Status Lowering::Lower(const Operation& op, const graph::Reshape&) {
  const graph::Value& src = builder_.value(op.srcs[0]);
  const graph::Value& dst = builder_.value(op.dst);
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc src_desc,
                        PlainDesc(src.dims, src.type, /*channels_last=*/false));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc dst_desc,
                        PlainDesc(dst.dims, dst.type, /*channels_last=*/false));
  if (src_desc.SizeBytes() != dst_desc.SizeBytes()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot reshape ", DimsToString(src.dims), " to ", DimsToString(dst.dims)));
  }
  ABSL_ASSIGN_OR_RETURN(const Place place, builder_.InLayout(op.srcs[0], src_desc, op.name));
  builder_.Consume(op.srcs[0]);
  builder_.Bind(op.dst, {place.buffer, dst_desc});
  return absl::OkStatus();
}

// Only operations read the value that reorder it to a layout of their own if it has another.
bool Lowering::IsReorderedAnyway(ValueId id) const {
  int64_t reorders = 0;
  for (const Operation& op : network_.operations) {
    if (std::holds_alternative<graph::Convolution>(op.params) ||
        std::holds_alternative<graph::LayerNormalization>(op.params)) {
      reorders += absl::c_count(op.srcs, id);
    }
  }
  return reorders == builder_.RemainingUses(id);
}

// A reorder from the source with its dimensions renamed to row-major; no step where others reorder
// it.
absl::Status Lowering::Lower(const Operation& op, const graph::Transpose& transpose) {
  ABSL_ASSIGN_OR_RETURN(const Place src, builder_.Home(op.srcs[0]));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc view, src.desc.Permuted(transpose.order));
  if (IsReorderedAnyway(op.dst)) {
    builder_.Consume(op.srcs[0]);
    builder_.Bind(op.dst, {src.buffer, view});
    return absl::OkStatus();
  }
  const graph::Value& value = builder_.value(op.dst);
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc desc,
                        PlainDesc(value.dims, value.type, /*channels_last=*/false));
  ABSL_ASSIGN_OR_RETURN(auto reorder, builder_.Create(ReorderDesc{view, desc}));
  return EmitUnary(op, std::move(reorder), src, /*may_run_in_place=*/false);
}

// A part of its source where that is a box of whole blocks: no step. Else a step that keeps the
// layout.
absl::Status Lowering::Lower(const Operation& op, const graph::Select& select) {
  ABSL_ASSIGN_OR_RETURN(const Place src, builder_.Home(op.srcs[0]));
  if (absl::StatusOr<MemoryDesc> view = ViewOf(select, src.desc); view.ok()) {
    builder_.Consume(op.srcs[0]);
    builder_.Bind(op.dst, {src.buffer, *std::move(view)});
    return absl::OkStatus();
  }
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc desc, LayoutLike(src.desc, builder_.value(op.dst).dims));
  ABSL_ASSIGN_OR_RETURN(auto primitive,
                        builder_.Create(SelectDesc{src.desc, desc, select.from, select.fill}));
  return EmitUnary(op, std::move(primitive), src, /*may_run_in_place=*/false);
}

absl::Status Lowering::Lower(const Operation& op, const graph::Gather& gather) {
  const auto row_major = [&](ValueId id) {
    return RowMajorOfRank(id, builder_.value(id).dims.size(), op);
  };
  ABSL_ASSIGN_OR_RETURN(const Place src, row_major(op.srcs[0]));
  ABSL_ASSIGN_OR_RETURN(const Place indices, row_major(op.srcs[1]));
  const graph::Value& value = builder_.value(op.dst);
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc dst,
                        PlainDesc(value.dims, value.type, /*channels_last=*/false));
  ABSL_ASSIGN_OR_RETURN(auto step, CreateGatherStep(gather, src.desc, indices.desc, dst));
  builder_.Consume(op.srcs[1]);
  return EmitUnary(op, std::move(step), src, /*may_run_in_place=*/false,
                   {{kArgSrc1, indices.buffer}});
}

// Large tables of the file are in memory once for all plans of a model.
absl::Status Lowering::Lower(const Operation& op, const graph::Literal& literal) {
  const graph::Value& value = builder_.value(op.dst);
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc desc,
                        PlainDesc(value.dims, value.type, /*channels_last=*/false));
  if (literal.constant->stored != nullptr && literal.constant->quantized == nullptr) {
    graph::Weights table;
    table.key = literal.constant->name;
    table.dims = value.dims;
    table.stored = literal.constant->stored;
    const LoweringContext& context = builder_.context();
    ABSL_ASSIGN_OR_RETURN(auto shared, context.weights->Pack(table, desc, context.team));
    builder_.Bind(op.dst, builder_.ConstantPlace(desc, std::move(shared)));
    return absl::OkStatus();
  }
  ABSL_ASSIGN_OR_RETURN(const graph::ConstantPtr constant, graph::InMemory(literal.constant));
  ABSL_ASSIGN_OR_RETURN(AlignedBuffer bytes, AlignedBuffer::Allocate(desc.SizeBytes()));
  std::memcpy(bytes.data(), constant->floats.data(), bytes.size());
  builder_.Bind(op.dst, builder_.ConstantPlace(
                            desc, std::make_shared<const AlignedBuffer>(std::move(bytes))));
  return absl::OkStatus();
}

}  // namespace tilewire::runtime
