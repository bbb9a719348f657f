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
//                 under a mask, or element by element where the unit has none for a tensor's type.
//                 An operand that is broadcast along the columns is loaded once per row, or once
//                 for all rows.
//
// "Hoisting" is that loading in advance: see IsHoisted(). Four vectors, the slots, are in work at a
// time so that their latencies overlap; each runs through Load, the primitive's own EmitFunction,
// the post-ops and Store. Vector registers 0 to 3 are the slots' values, 4 to 8 hold the other
// operands and then what the post-ops overwrite, 9 holds the mask of the tail where the unit has no
// opmasks, 10 to 14 hold hoisted operands, and 7 and 15 may hold constants of a function.
#include "engine/kernels/elements/elementwise_kernel.h"

#include <algorithm>
#include <cstddef>
#include <variant>

#include "engine/kernels/products/counted_loop.h"

namespace tilewire {
namespace {

constexpr int kUnroll = 4;        // vectors in registers 0 to 3
constexpr int kFirstScratch = 4;  // 4 to 8: other operands, then what the post-ops overwrite
constexpr int kTailVector = 9;
constexpr int kFirstHoisted = 10;  // of operand 1
constexpr int kHoistedFirst = 14;  // operand 0

}  // namespace

int ElementwiseConfig::LaneBytes() const {
  int bytes = std::max(least_lane_bytes, ElementLanes::LaneBytes(dst_type));
  for (const Operand& operand : operands)
    bytes = std::max(bytes, ElementLanes::LaneBytes(operand.type));
  return bytes;
}

bool ElementwiseConfig::MasksTail() const {
  const auto masks = [&](DataType type) { return ElementLanes::Masks(unit, LaneBytes(), type); };
  return masks(dst_type) &&
         std::all_of(operands.begin(), operands.end(),
                     [&](const Operand& operand) { return masks(operand.type); });
}

ElementwiseGenerator::ElementwiseGenerator(absl::string_view name, const ElementwiseConfig& config)
    : Generator(name),
      config_(config),
      lanes_(this, config.unit, config.LaneBytes(),
             {.tail = {.spare = spare_, .opmask = k2, .vector = kTailVector},
              .scratch = kFirstScratch}) {
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
    mov(operands_[i], ptr[rdi + offsetof(ElementwiseArgs, operands) + i * sizeof(std::byte*)]);
  }
  mov(rows_, ptr[rdi + offsetof(ElementwiseArgs, rows)]);
  SetTail();
  EmitConstants();
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
  lanes_.EmitTable();
  EmitTables();
}

// The lanes of the columns after the last whole vector.
void ElementwiseGenerator::SetTail() {
  if (!config_.MasksTail()) return;
  mov(left_, ptr[rdi + offsetof(ElementwiseArgs, columns)]);
  and_(left_, lanes_.count() - 1);
  lanes_.SetTail(left_);
}

bool ElementwiseGenerator::IsHoisted(int operand) const {
  const ElementwiseConfig::Operand& o = config_.operands[operand];
  return o.broadcast || (operand > 0 && config_.columns > 0 && o.row_bytes == 0);
}

Xbyak::Xmm ElementwiseGenerator::Hoisted(int operand, int vector) const {
  if (operand == 0) return Vector(kHoistedFirst);
  const bool one = config_.operands[operand].broadcast;
  return Vector(kFirstHoisted + (operand - 1) * kFewElementwiseVectors + (one ? 0 : vector));
}

ElementwiseGenerator::Part ElementwiseGenerator::PartOf(int vector) const {
  return (vector + 1) * lanes_.count() > config_.columns ? Part::kTail : Part::kWhole;
}

// Loads the operands that stay in registers over all rows, or those that do over one row.
void ElementwiseGenerator::Hoist(int vectors, bool per_row) {
  for (int i = 0; i < static_cast<int>(config_.operands.size()); ++i) {
    const ElementwiseConfig::Operand& operand = config_.operands[i];
    if (!IsHoisted(i) || (operand.row_bytes != 0) != per_row) continue;
    if (operand.broadcast) {
      lanes_.Broadcast(operand.type, Hoisted(i, 0), operands_[i]);
      continue;
    }
    const int step = lanes_.count() * static_cast<int>(SizeOf(operand.type));
    for (int v = 0; v < vectors; ++v)
      lanes_.Load(operand.type, Hoisted(i, v), operands_[i] + v * step, PartOf(v));
  }
}

void ElementwiseGenerator::EmitFewColumns() {
  const int vectors = static_cast<int>((config_.columns + lanes_.count() - 1) / lanes_.count());
  bool rows_differ = false;  // a broadcast operand has to be loaded for every row
  for (const ElementwiseConfig::Operand& operand : config_.operands)
    rows_differ |= operand.broadcast && operand.row_bytes != 0;
  xor_(column_, column_);
  Hoist(vectors, /*per_row=*/false);
  for (int rows : {kUnroll / vectors, 1}) {
    if (rows > 1 && rows_differ) continue;
    EmitWhileLeft(this, rows_, rows, [&] {
      Hoist(vectors, /*per_row=*/true);
      std::vector<Slot> slots;
      for (int row = 0; row < rows; ++row) {
        for (int v = 0; v < vectors; ++v) slots.push_back({row * vectors + v, row, v, PartOf(v)});
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
    EmitWhileLeft(this, left_, vectors * lanes_.count(), [&] {
      std::vector<Slot> slots;
      for (int v = 0; v < vectors; ++v) slots.push_back({v, 0, v});
      EmitSlots(slots);
      add(column_, vectors * lanes_.count());
    });
  }
  if (config_.MasksTail()) {
    EmitIfLeft(this, left_, [&] { EmitSlots({{0, 0, 0, Part::kTail}}); });
  } else {
    EmitWhileLeft(this, left_, 1, [&] {
      EmitSlots({{0, 0, 0, Part::kOne}});
      inc(column_);
    });
  }
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

Xbyak::RegExp ElementwiseGenerator::At(const Xbyak::Reg64& base, DataType type, int64_t row_bytes,
                                       const Slot& slot) const {
  const int size = static_cast<int>(SizeOf(type));
  return base + column_ * size +
         static_cast<int>(slot.row * row_bytes + slot.vector * lanes_.count() * size);
}

void ElementwiseGenerator::LoadOperand(int operand, const Slot& slot, const Xbyak::Xmm& to) {
  const ElementwiseConfig::Operand& from = config_.operands[operand];
  lanes_.Load(from.type, to, At(operands_[operand], from.type, from.row_bytes, slot), slot.part);
}

void ElementwiseGenerator::EmitSlots(const std::vector<Slot>& slots) {
  for (const Slot& slot : slots) {
    if (IsHoisted(0)) {
      vmovaps(Vector(slot.value), Hoisted(0, 0));
    } else {
      LoadOperand(0, slot, Vector(slot.value));
    }
    std::vector<Xbyak::Xmm> others;
    for (int i = 1; i < static_cast<int>(config_.operands.size()); ++i) {
      others.push_back(IsHoisted(i) ? Hoisted(i, slot.vector) : Vector(kFirstScratch + i));
      if (!IsHoisted(i)) LoadOperand(i, slot, others.back());
    }
    EmitFunction(Vector(slot.value), others, Vector(kFirstScratch));
  }
  EmitPostOps(slots);
  for (const Slot& slot : slots) {
    lanes_.Store(config_.dst_type, Vector(slot.value),
                 At(dst_, config_.dst_type, config_.dst_row_bytes, slot), slot.part);
  }
}

void ElementwiseGenerator::EmitPostOps(const std::vector<Slot>& slots) {
  const Xbyak::Xmm factor = Vector(kFirstScratch), before = Vector(kFirstScratch + 1);
  for (size_t i = 0; i < emitters_.size(); ++i) {
    const PostOp& entry = config_.post_ops.entries()[i];
    if (const auto* sum = std::get_if<SumPostOp>(&entry)) {
      unit().Broadcast(this, factor, sum->scale, rax);
      for (const Slot& slot : slots) {
        lanes_.Load(config_.dst_type, before,
                    At(dst_, config_.dst_type, config_.dst_row_bytes, slot), slot.part);
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
