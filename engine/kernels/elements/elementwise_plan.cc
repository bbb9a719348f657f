// SPDX-License-Identifier: Apache-2.0
//
// How a function of several tensors becomes a few loops over memory.
//
// LoopsOver() (strided_loops.h) turns the tensors, whatever their layouts, into one nest of loops
// with constant strides, in the order of dst's memory. A plan splits the nest: the innermost loop
// gives the columns, along which every tensor is dense or broadcast, the next gives the rows, and
// all others are counted by the tasks that threads take.
#include "engine/kernels/elements/elementwise_plan.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"

namespace tilewire {
namespace {

constexpr int64_t kTaskElements = 16 * 1024;
constexpr int64_t kLongestStep = 8 * 8;  // of 8 bytes per element, over a few rows

}  // namespace

absl::StatusOr<ElementwisePlan> ElementwisePlan::Create(absl::Span<const MemoryDesc* const> tensors,
                                                        const jit::VectorUnit& unit) {
  ABSL_ASSIGN_OR_RETURN(std::vector<StridedLoop> loops, LoopsOver(tensors));
  ElementwisePlan plan(unit);
  for (const MemoryDesc* tensor : tensors) plan.types_.push_back(tensor->data_type());
  plan.rows_.strides.assign(tensors.size(), 0);
  plan.columns_.strides.assign(tensors.size(), 1);
  if (!loops.empty()) {
    plan.columns_ = loops.back();
    loops.pop_back();
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const int64_t stride = plan.columns_.strides[i];
    if (stride != 1 && (i == 0 || stride != 0)) {
      return Unimplemented(tensors[i]->ToString(), ": elements do not follow each other");
    }
  }
  if (!loops.empty()) {
    plan.rows_ = loops.back();
    loops.pop_back();
  }
  for (int64_t stride : plan.rows_.strides) {
    if (stride > std::numeric_limits<int32_t>::max() / kLongestStep) {
      return Unimplemented("a step between rows beyond 31 bits");
    }
  }
  if (tensors[0]->ElementCount() == 0) plan.outer_count_ = 0;  // others may be beyond 64 bits
  for (const StridedLoop& loop : loops) plan.outer_count_ *= loop.count;
  plan.outer_ = std::move(loops);
  plan.columns_per_task_ =
      plan.columns_.count <= 2 * kTaskElements ? plan.columns_.count : kTaskElements;
  plan.columns_per_task_ = std::max<int64_t>(plan.columns_per_task_, 1);  // no element
  plan.rows_per_task_ = std::max<int64_t>(1, kTaskElements / plan.columns_per_task_);
  return plan;
}

ElementwiseConfig ElementwisePlan::Config(const PostOps& post_ops, int least_lane_bytes) const {
  ElementwiseConfig config{.unit = unit_};
  config.least_lane_bytes = least_lane_bytes;
  config.post_ops = post_ops;
  config.dst_type = types_[0];
  config.dst_row_bytes = rows_.strides[0] * SizeOf(types_[0]);
  for (size_t i = 1; i < types_.size(); ++i) {
    config.operands.push_back(
        {columns_.strides[i] == 0, rows_.strides[i] * SizeOf(types_[i]), types_[i]});
  }
  const int64_t few = kFewElementwiseVectors * unit_.bytes() / config.LaneBytes();
  config.columns = columns_.count <= few && config.MasksTail() ? columns_.count : 0;
  return config;
}

void ElementwisePlan::Run(ElementwiseGenerator::Function function, void* dst,
                          absl::Span<const void* const> operands,
                          const threading::Team& team) const {
  const int64_t row_tasks = DivUp(rows_.count, rows_per_task_);
  const int64_t column_tasks = DivUp(columns_.count, columns_per_task_);
  team.ParallelFor(outer_count_ * row_tasks * column_tasks, [&](int64_t task) {
    const int64_t column = task % column_tasks * columns_per_task_;
    const int64_t row = task / column_tasks % row_tasks * rows_per_task_;
    const auto offset = [&](size_t tensor) {
      int64_t rest = task / column_tasks / row_tasks;
      int64_t at = row * rows_.strides[tensor] + column * columns_.strides[tensor];
      for (auto loop = outer_.rbegin(); loop != outer_.rend(); ++loop) {
        at += rest % loop->count * loop->strides[tensor];
        rest /= loop->count;
      }
      return at * SizeOf(types_[tensor]);
    };
    ElementwiseArgs args = {};
    args.dst = static_cast<std::byte*>(dst) + offset(0);
    for (size_t i = 0; i < operands.size(); ++i)
      args.operands[i] = static_cast<const std::byte*>(operands[i]) + offset(i + 1);
    args.rows = std::min(rows_per_task_, rows_.count - row);
    args.columns = std::min(columns_per_task_, columns_.count - column);
    function(&args);
  });
}

}  // namespace tilewire
