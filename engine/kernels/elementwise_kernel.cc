// SPDX-License-Identifier: Apache-2.0
//
// How a function of several tensors becomes a few loops over memory.
//
// LoopsOver() (strided_loops.h) turns the tensors, whatever their layouts, into one nest of loops
// with constant strides, in the order of dst's memory. A plan splits the nest: the innermost loop
// gives the columns, along which every tensor is dense or broadcast, the next gives the rows, and
// all others are counted by the tasks that threads take. A generated function computes any number
// of rows of any number of columns, as far as the task reaches.
//
// The function has one of two shapes:
//
//   few columns   Up to two vectors per row, as of a block of channels. Their number is part of the
//                 code. A vector of an operand that is the same in every row (a bias, the scale of
//                 a batch normalization) is loaded once, before all rows; four vectors of dst, of
//                 as many rows as they make, are computed side by side.
//   many columns  A loop over the row, four vectors at a time, then one at a time, then the tail
//                 under a mask. An operand that is broadcast along the columns is loaded once per
//                 row, or once for all rows.
//
// "Hoisting" is that loading in advance: see IsHoisted(). Four vectors, the slots, are in work at a
// time so that their latencies overlap; each runs through Load, the primitive's own EmitFunction,
// the post-ops and Store. Vector registers 0 to 3 are the slots' values, 4 to 8 hold the other
// operands and then what the post-ops overwrite, 9 holds the mask of the tail where the unit has no
// opmasks, and the rest hold hoisted operands.
#include "engine/kernels/elementwise_kernel.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <variant>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tilewire {
namespace {

constexpr int kUnroll = 4;        // vectors in registers 0 to 3
constexpr int kFirstScratch = 4;  // 4 to 8: other operands, then what the post-ops overwrite
constexpr int kTailVector = 9;
constexpr int kFirstHoisted = 10;
constexpr int kMaxFewVectors = 2;  // per row, where the columns are few
constexpr int64_t kTaskElements = 16 * 1024;

}  // namespace

ElementwiseGenerator::ElementwiseGenerator(absl::string_view name, const ElementwiseConfig& config)
    : Generator(name),
      config_(config),
      tail_(this, config.unit, {.spare = spare_, .opmask = k2, .vector = kTailVector}) {
  for (const PostOp& entry : config.post_ops.entries()) {
    const auto* eltwise = std::get_if<EltwisePostOp>(&entry);
    emitters_.push_back(eltwise == nullptr ? nullptr
                                           : std::make_unique<jit::EltwiseEmitter>(
                                                 this, config.unit, eltwise->op,
                                                 jit::EltwiseEmitter::Registers{
                                                     .table = spare_, .scratch = {4, 5, 6, 7, 8}}));
  }
}

void ElementwiseGenerator::Emit() {
  mov(dst_, ptr[rdi + offsetof(ElementwiseArgs, dst)]);
  for (size_t i = 0; i < config_.operands.size(); ++i) {
    mov(operands_[i], ptr[rdi + offsetof(ElementwiseArgs, operands) + i * sizeof(float*)]);
  }
  mov(rows_, ptr[rdi + offsetof(ElementwiseArgs, rows)]);
  SetTail();
  if (config_.columns > 0) {
    EmitFewColumns();
  } else {
    EmitManyColumns();
  }
  vzeroupper();
  ret();
  for (const auto& emitter : emitters_) {
    if (emitter != nullptr) emitter->EmitTable();
  }
  tail_.EmitTable();
}

// The lanes of the columns after the last whole vector.
void ElementwiseGenerator::SetTail() {
  mov(left_, ptr[rdi + offsetof(ElementwiseArgs, columns)]);
  and_(left_, lanes() - 1);
  tail_.Set(left_);
}

bool ElementwiseGenerator::IsHoisted(int operand) const {
  const ElementwiseConfig::Operand& o = config_.operands[operand];
  return operand > 0 && (o.broadcast || (config_.columns > 0 && o.row_bytes == 0));
}

Xbyak::Xmm ElementwiseGenerator::Hoisted(int operand, int vector) const {
  const bool one = config_.operands[operand].broadcast;
  return Vector(kFirstHoisted + (operand - 1) * kMaxFewVectors + (one ? 0 : vector));
}

// Loads the operands that stay in registers over all rows, or those that do over one row.
void ElementwiseGenerator::Hoist(int vectors, bool per_row) {
  for (int i = 1; i < static_cast<int>(config_.operands.size()); ++i) {
    const ElementwiseConfig::Operand& operand = config_.operands[i];
    if (!IsHoisted(i) || (operand.row_bytes != 0) != per_row) continue;
    if (operand.broadcast) {
      vbroadcastss(Hoisted(i, 0), ptr[operands_[i]]);
      continue;
    }
    for (int v = 0; v < vectors; ++v) {
      const bool masked = (v + 1) * lanes() > config_.columns;
      tail_.Load(Hoisted(i, v), ptr[operands_[i] + v * vector_bytes()], masked);
    }
  }
}

void ElementwiseGenerator::EmitFewColumns() {
  const int vectors = static_cast<int>((config_.columns + lanes() - 1) / lanes());
  bool rows_differ = false;  // a broadcast operand has to be loaded for every row
  for (size_t i = 1; i < config_.operands.size(); ++i) {
    rows_differ |= config_.operands[i].broadcast && config_.operands[i].row_bytes != 0;
  }
  xor_(column_, column_);
  Hoist(vectors, /*per_row=*/false);
  for (int rows : {kUnroll / vectors, 1}) {
    if (rows > 1 && rows_differ) continue;
    Xbyak::Label next, done;
    L(next);
    cmp(rows_, rows);
    jl(done, T_NEAR);
    Hoist(vectors, /*per_row=*/true);
    std::vector<Slot> slots;
    for (int row = 0; row < rows; ++row) {
      for (int v = 0; v < vectors; ++v) {
        slots.push_back({row * vectors + v, row, v, (v + 1) * lanes() > config_.columns});
      }
    }
    EmitSlots(slots);
    EmitAdvance(rows);
    sub(rows_, rows);
    jmp(next, T_NEAR);
    L(done);
  }
}

void ElementwiseGenerator::EmitManyColumns() {
  Xbyak::Label row;
  Hoist(1, /*per_row=*/false);
  L(row);
  Hoist(1, /*per_row=*/true);
  xor_(column_, column_);
  mov(left_, ptr[rdi + offsetof(ElementwiseArgs, columns)]);
  for (int vectors : {kUnroll, 1}) {
    Xbyak::Label next, done;
    L(next);
    cmp(left_, vectors * lanes());
    jl(done, T_NEAR);
    std::vector<Slot> slots;
    for (int v = 0; v < vectors; ++v) slots.push_back({v, 0, v, false});
    EmitSlots(slots);
    add(column_, vectors * vector_bytes());
    sub(left_, vectors * lanes());
    jmp(next, T_NEAR);
    L(done);
  }
  Xbyak::Label end;
  test(left_, left_);
  jz(end, T_NEAR);
  EmitSlots({{0, 0, 0, true}});
  L(end);
  EmitAdvance(1);
  dec(rows_);
  jnz(row, T_NEAR);
}

void ElementwiseGenerator::EmitAdvance(int rows) {
  add(dst_, static_cast<int>(rows * config_.dst_row_bytes));
  for (size_t i = 0; i < config_.operands.size(); ++i) {
    const int64_t bytes = rows * config_.operands[i].row_bytes;
    if (bytes != 0) add(operands_[i], static_cast<int>(bytes));
  }
}

Xbyak::Address ElementwiseGenerator::At(const Xbyak::Reg64& base, int64_t row_bytes,
                                        const Slot& slot) const {
  return ptr[base + column_ +
             static_cast<int>(slot.row * row_bytes + slot.vector * vector_bytes())];
}

void ElementwiseGenerator::EmitSlots(const std::vector<Slot>& slots) {
  for (const Slot& slot : slots) {
    const ElementwiseConfig::Operand& first = config_.operands[0];
    tail_.Load(Vector(slot.value), At(operands_[0], first.row_bytes, slot), slot.masked);
    std::vector<Xbyak::Xmm> others;
    for (int i = 1; i < static_cast<int>(config_.operands.size()); ++i) {
      if (IsHoisted(i)) {
        others.push_back(Hoisted(i, slot.vector));
        continue;
      }
      others.push_back(Vector(kFirstScratch + i));
      tail_.Load(others.back(), At(operands_[i], config_.operands[i].row_bytes, slot), slot.masked);
    }
    EmitFunction(Vector(slot.value), others, Vector(kFirstScratch));
  }
  EmitPostOps(slots);
  for (const Slot& slot : slots) {
    tail_.Store(At(dst_, config_.dst_row_bytes, slot), Vector(slot.value), slot.masked);
  }
}

void ElementwiseGenerator::EmitPostOps(const std::vector<Slot>& slots) {
  const Xbyak::Xmm factor = Vector(kFirstScratch), before = Vector(kFirstScratch + 1);
  for (size_t i = 0; i < emitters_.size(); ++i) {
    const PostOp& entry = config_.post_ops.entries()[i];
    if (const auto* sum = std::get_if<SumPostOp>(&entry)) {
      unit().Broadcast(this, factor, sum->scale, rax);
      for (const Slot& slot : slots) {
        tail_.Load(before, At(dst_, config_.dst_row_bytes, slot), slot.masked);
        vfmadd231ps(Vector(slot.value), factor, before);
      }
      continue;
    }
    std::vector<int> values;
    for (const Slot& slot : slots) values.push_back(slot.value);
    emitters_[i]->LoadTable();
    emitters_[i]->Apply(values);
    const float scale = std::get<EltwisePostOp>(entry).scale;
    if (scale == 1.0f) continue;
    unit().Broadcast(this, factor, scale, rax);
    for (int value : values) vmulps(Vector(value), Vector(value), factor);
  }
}

absl::StatusOr<ElementwisePlan> ElementwisePlan::Create(absl::Span<const MemoryDesc* const> tensors,
                                                        const jit::VectorUnit& unit) {
  ABSL_ASSIGN_OR_RETURN(std::vector<StridedLoop> loops, LoopsOver(tensors));
  ElementwisePlan plan(unit);
  plan.rows_.strides.assign(tensors.size(), 0);
  plan.columns_.strides.assign(tensors.size(), 1);
  if (!loops.empty()) {
    plan.columns_ = loops.back();
    loops.pop_back();
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const int64_t stride = plan.columns_.strides[i];
    // Operand 0 is never broadcast along the columns.
    if (stride != 1 && (i < 2 || stride != 0)) {
      return absl::UnimplementedError(
          absl::StrCat(tensors[i]->ToString(), ": elements do not follow each other"));
    }
  }
  if (!loops.empty()) {
    plan.rows_ = loops.back();
    loops.pop_back();
  }
  for (int64_t stride : plan.rows_.strides) {
    if (stride > std::numeric_limits<int32_t>::max() / 32) {
      return absl::UnimplementedError("a step between rows beyond 31 bits");
    }
  }
  for (const StridedLoop& loop : loops) plan.outer_count_ *= loop.count;
  plan.outer_ = std::move(loops);
  plan.columns_per_task_ =
      plan.columns_.count <= 2 * kTaskElements ? plan.columns_.count : kTaskElements;
  plan.columns_per_task_ = std::max<int64_t>(plan.columns_per_task_, 1);  // no element
  plan.rows_per_task_ = std::max<int64_t>(1, kTaskElements / plan.columns_per_task_);
  return plan;
}

ElementwiseConfig ElementwisePlan::Config(const PostOps& post_ops) const {
  ElementwiseConfig config{.unit = unit_};
  config.post_ops = post_ops;
  config.dst_row_bytes = rows_.strides[0] * static_cast<int64_t>(sizeof(float));
  for (size_t i = 1; i < rows_.strides.size(); ++i) {
    config.operands.push_back(
        {columns_.strides[i] == 0, rows_.strides[i] * static_cast<int64_t>(sizeof(float))});
  }
  const int64_t few = kMaxFewVectors * unit_.lanes();
  config.columns = columns_.count <= few ? columns_.count : 0;
  return config;
}

void ElementwisePlan::Run(ElementwiseGenerator::Function function, float* dst,
                          absl::Span<const float* const> operands,
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
      return at;
    };
    ElementwiseArgs args = {};
    args.dst = dst + offset(0);
    for (size_t i = 0; i < operands.size(); ++i) args.operands[i] = operands[i] + offset(i + 1);
    args.rows = std::min(rows_per_task_, rows_.count - row);
    args.columns = std::min(columns_per_task_, columns_.count - column);
    function(&args);
  });
}

}  // namespace tilewire
