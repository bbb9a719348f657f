// SPDX-License-Identifier: Apache-2.0
//
// A generated function computes any number of rows of any number of columns, as far as a task of
// its plan reaches (elementwise_plan.cc). It has one of two shapes:
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
#include "engine/kernels/counted_loop.h"

namespace tilewire {
namespace {

constexpr int kUnroll = 4;        // vectors in registers 0 to 3
constexpr int kFirstScratch = 4;  // 4 to 8: other operands, then what the post-ops overwrite
constexpr int kTailVector = 9;
constexpr int kFirstHoisted = 10;

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
  return Vector(kFirstHoisted + (operand - 1) * kFewElementwiseVectors + (one ? 0 : vector));
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
    EmitWhileLeft(this, rows_, rows, [&] {
      Hoist(vectors, /*per_row=*/true);
      std::vector<Slot> slots;
      for (int row = 0; row < rows; ++row) {
        for (int v = 0; v < vectors; ++v) {
          slots.push_back({row * vectors + v, row, v, (v + 1) * lanes() > config_.columns});
        }
      }
      EmitSlots(slots);
      EmitAdvance(rows);
    });
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
    EmitWhileLeft(this, left_, vectors * lanes(), [&] {
      std::vector<Slot> slots;
      for (int v = 0; v < vectors; ++v) slots.push_back({v, 0, v, false});
      EmitSlots(slots);
      add(column_, vectors * vector_bytes());
    });
  }
  EmitIfLeft(this, left_, [&] { EmitSlots({{0, 0, 0, true}}); });
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

}  // namespace tilewire
