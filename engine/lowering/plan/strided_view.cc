// SPDX-License-Identifier: Apache-2.0
#include "engine/lowering/plan/strided_view.h"

#include <variant>

#include "absl/algorithm/container.h"
#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire::lowering {
namespace {

// Some neighbouring elements along which memory advances by one stride.
struct Run {
  int64_t size, stride;
};

// The dimensions of a plain layout, innermost last, joined where they are one run.
std::vector<Run> RunsOf(const MemoryDesc& desc) {
  std::vector<Run> runs;
  for (int d = 0; d < desc.rank(); ++d) {
    if (desc.dim(d) == 1) continue;
    if (!runs.empty() && runs.back().stride == desc.dim(d) * desc.stride(d)) {
      runs.back() = {runs.back().size * desc.dim(d), desc.stride(d)};
    } else {
      runs.push_back({desc.dim(d), desc.stride(d)});
    }
  }
  return runs;
}

// The strides of `dims`, each cut from one run; those of single elements are 1.
//   kUnimplemented  a dimension would take several runs
absl::StatusOr<Dims> StridesAlong(std::vector<Run> runs, const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d] == 1) continue;
    if (runs.empty() || runs.back().size % dims[d] != 0)
      return Unimplemented(DimsToString(dims), " takes several strides");
    strides[d] = runs.back().stride;
    runs.back() = {runs.back().size / dims[d], runs.back().stride * dims[d]};
    if (runs.back().size == 1) runs.pop_back();
  }
  return strides;
}

bool IsOneBox(const network::Select& select) {
  return absl::c_all_of(select.from, [](const std::vector<IndexRun>& runs) {
    return runs.empty() || (runs.size() == 1 && runs[0].start >= 0 && runs[0].step == 1);
  });
}

}  // namespace

absl::StatusOr<MemoryDesc> StridedView(const MemoryDesc& desc, const Dims& dims) {
  if (!desc.IsPlain() || desc.ElementCount() == 0)
    return Unimplemented(desc.ToString(), " has no strides");
  if (ElementCount(dims) != desc.ElementCount()) {
    return Internal("a view of the ", desc.ElementCount(), " elements of ", desc.ToString(), " as ",
                    DimsToString(dims));
  }
  ABSL_ASSIGN_OR_RETURN(const Dims strides, StridesAlong(RunsOf(desc), dims));
  // A part of what has as many elements more as there are before the first one.
  Dims whole = dims, offsets(dims.size(), 0);
  if (desc.offset0() != 0) {
    const auto unit = absl::c_find(strides, 1);
    if (unit == strides.end()) return Unimplemented("no dimension has the stride 1");
    const size_t d = unit - strides.begin();
    whole[d] += desc.offset0();
    offsets[d] = desc.offset0();
  }
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc all,
                        MemoryDesc::CreateStrided(whole, desc.data_type(), strides));
  return all.SubMemory(dims, offsets);
}

absl::StatusOr<MemoryDesc> ResultDesc(const OperationContext& context) {
  const network::Value& dst = context.dst_value();
  const network::Transpose* transpose = nullptr;
  int readers = 0;
  for (const network::Operation& op : context.network().operations) {
    if (op.srcs.empty() || op.srcs[0] != context.dst()) continue;
    transpose = std::get_if<network::Transpose>(&op.params);
    ++readers;
  }
  const int last = static_cast<int>(dst.dims.size()) - 1;
  if (readers == 1 && transpose != nullptr && transpose->order.back() == last)
    return runtime::NestedDesc(dst.dims, dst.type, transpose->order);
  return context.RowMajorDesc(context.dst());
}

bool IsReadByStrides(const OperationContext& context, ValueId value) {
  int64_t reads = 0;
  for (const network::Operation& op : context.network().operations) {
    const int64_t count = absl::c_count(op.srcs, value);
    if (count == 0) continue;
    const auto* select = std::get_if<network::Select>(&op.params);
    const bool is_view = std::holds_alternative<network::Transpose>(op.params) ||
                         std::holds_alternative<network::Reshape>(op.params) ||
                         (select != nullptr && IsOneBox(*select));
    const bool follows = RowOf(op).reads_strides || (is_view && IsReadByStrides(context, op.dst));
    reads += follows ? count : 0;
  }
  return reads > 0 && reads == context.remaining_uses(value);
}

}  // namespace tilewire::lowering
