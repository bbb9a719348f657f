// SPDX-License-Identifier: Apache-2.0
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
constexpr int kScratch = 5;
constexpr int kLaneMask = 9;  // AVX2's
constexpr int kFirstHoisted = 10;
constexpr int kMaxFewVectors = 2;  // of a row whose columns are unrolled
constexpr int64_t kTaskElements = 16 * 1024;

}  // namespace

RowsGenerator::RowsGenerator(absl::string_view name, const RowsConfig& config)
    : Generator(name), config_(config) {
  for (const PostOp& entry : config.post_ops.entries()) {
    const auto* eltwise = std::get_if<EltwisePostOp>(&entry);
    emitters_.push_back(eltwise == nullptr ? nullptr
                                           : std::make_unique<jit::EltwiseEmitter>(
                                                 this, config.isa, eltwise->op,
                                                 jit::EltwiseEmitter::Registers{
                                                     .table = spare_, .scratch = {4, 5, 6, 7, 8}}));
  }
}

Xbyak::Xmm RowsGenerator::Vector(int index) const {
  return Xbyak::Xmm(is_avx512() ? Xbyak::Operand::ZMM : Xbyak::Operand::YMM, index);
}

void RowsGenerator::Emit() {
  mov(dst_, ptr[rdi + offsetof(RowsArgs, dst)]);
  for (size_t i = 0; i < config_.operands.size(); ++i) {
    mov(operands_[i], ptr[rdi + offsetof(RowsArgs, operands) + i * sizeof(float*)]);
  }
  mov(rows_, ptr[rdi + offsetof(RowsArgs, rows)]);
  LoadMask();
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
  if (is_avx512()) return;
  align(32);
  L(lane_table_);
  for (int i = 0; i < 16; ++i) dd(i < 8 ? 0xFFFFFFFF : 0);
}

// The lanes of the columns behind the last whole vector.
void RowsGenerator::LoadMask() {
  mov(left_, ptr[rdi + offsetof(RowsArgs, columns)]);
  and_(left_, lanes() - 1);
  if (is_avx512()) {
    mov(eax, 0xFFFF);
    bzhi(eax, eax, left_.cvt32());
    kmovw(mask_, eax);
    return;
  }
  lea(spare_, ptr[rip + lane_table_]);
  add(spare_, 32);
  shl(left_, 2);
  sub(spare_, left_);
  vmovups(Vector(kLaneMask), ptr[spare_]);
}

bool RowsGenerator::IsHoisted(int operand) const {
  const RowsConfig::Operand& o = config_.operands[operand];
  return operand > 0 && (o.broadcast || (config_.columns > 0 && o.row_bytes == 0));
}

Xbyak::Xmm RowsGenerator::Hoisted(int operand, int vector) const {
  const bool one = config_.operands[operand].broadcast;
  return Vector(kFirstHoisted + (operand - 1) * kMaxFewVectors + (one ? 0 : vector));
}

// Loads what stays in registers: over all rows, or for one row.
void RowsGenerator::Hoist(int vectors, bool per_row) {
  for (int i = 1; i < static_cast<int>(config_.operands.size()); ++i) {
    const RowsConfig::Operand& operand = config_.operands[i];
    if (!IsHoisted(i) || (operand.row_bytes != 0) != per_row) continue;
    if (operand.broadcast) {
      vbroadcastss(Hoisted(i, 0), ptr[operands_[i]]);
      continue;
    }
    for (int v = 0; v < vectors; ++v) {
      const bool masked = (v + 1) * lanes() > config_.columns;
      Load(Hoisted(i, v), ptr[operands_[i] + v * vector_bytes()], masked);
    }
  }
}

void RowsGenerator::EmitFewColumns() {
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

void RowsGenerator::EmitManyColumns() {
  Xbyak::Label row;
  Hoist(1, /*per_row=*/false);
  L(row);
  Hoist(1, /*per_row=*/true);
  xor_(column_, column_);
  mov(left_, ptr[rdi + offsetof(RowsArgs, columns)]);
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

void RowsGenerator::EmitAdvance(int rows) {
  add(dst_, static_cast<int>(rows * config_.dst_row_bytes));
  for (size_t i = 0; i < config_.operands.size(); ++i) {
    const int64_t bytes = rows * config_.operands[i].row_bytes;
    if (bytes != 0) add(operands_[i], static_cast<int>(bytes));
  }
}

Xbyak::Address RowsGenerator::At(const Xbyak::Reg64& base, int64_t row_bytes,
                                 const Slot& slot) const {
  return ptr[base + column_ +
             static_cast<int>(slot.row * row_bytes + slot.vector * vector_bytes())];
}

void RowsGenerator::EmitSlots(const std::vector<Slot>& slots) {
  for (const Slot& slot : slots) {
    const RowsConfig::Operand& first = config_.operands[0];
    Load(Vector(slot.value), At(operands_[0], first.row_bytes, slot), slot.masked);
    std::vector<Xbyak::Xmm> others;
    for (int i = 1; i < static_cast<int>(config_.operands.size()); ++i) {
      if (IsHoisted(i)) {
        others.push_back(Hoisted(i, slot.vector));
        continue;
      }
      others.push_back(Vector(kFirstScratch + i));
      Load(others.back(), At(operands_[i], config_.operands[i].row_bytes, slot), slot.masked);
    }
    EmitFunction(Vector(slot.value), others, Vector(kFirstScratch));
  }
  EmitPostOps(slots);
  for (const Slot& slot : slots) {
    Store(At(dst_, config_.dst_row_bytes, slot), Vector(slot.value), slot.masked);
  }
}

void RowsGenerator::EmitPostOps(const std::vector<Slot>& slots) {
  const Xbyak::Xmm factor = Vector(kFirstScratch), before = Vector(kFirstScratch + 1);
  for (size_t i = 0; i < emitters_.size(); ++i) {
    const PostOp& entry = config_.post_ops.entries()[i];
    if (const auto* sum = std::get_if<SumPostOp>(&entry)) {
      BroadcastConstant(factor, sum->scale);
      for (const Slot& slot : slots) {
        Load(before, At(dst_, config_.dst_row_bytes, slot), slot.masked);
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
    BroadcastConstant(factor, scale);
    for (int value : values) vmulps(Vector(value), Vector(value), factor);
  }
}

void RowsGenerator::Load(const Xbyak::Xmm& to, const Xbyak::Address& from, bool masked) {
  if (!masked) {
    vmovups(to, from);
  } else if (is_avx512()) {
    vmovups(to | mask_ | T_z, from);
  } else {
    vmaskmovps(to, Vector(kLaneMask), from);
  }
}

void RowsGenerator::Store(const Xbyak::Address& to, const Xbyak::Xmm& from, bool masked) {
  if (!masked) {
    vmovups(to, from);
  } else if (is_avx512()) {
    vmovups(to | mask_, from);
  } else {
    vmaskmovps(to, Vector(kLaneMask), from);
  }
}

void RowsGenerator::BroadcastConstant(const Xbyak::Xmm& to, float value) {
  const Xbyak::Xmm low(to.getIdx());
  mov(eax, std::bit_cast<uint32_t>(value));
  vmovd(low, eax);
  vbroadcastss(to, low);
}

absl::StatusOr<ElementwisePlan> ElementwisePlan::Create(absl::Span<const MemoryDesc* const> tensors,
                                                        cpu::Isa isa) {
  ABSL_ASSIGN_OR_RETURN(std::vector<StridedLoop> loops, LoopsOver(tensors));
  ElementwisePlan plan;
  plan.isa_ = isa;
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

RowsConfig ElementwisePlan::Config(const PostOps& post_ops) const {
  RowsConfig config;
  config.isa = isa_;
  config.post_ops = post_ops;
  config.dst_row_bytes = rows_.strides[0] * static_cast<int64_t>(sizeof(float));
  for (size_t i = 1; i < rows_.strides.size(); ++i) {
    config.operands.push_back(
        {columns_.strides[i] == 0, rows_.strides[i] * static_cast<int64_t>(sizeof(float))});
  }
  const int64_t few = kMaxFewVectors * (isa_ >= cpu::Isa::kAvx512 ? 16 : 8);
  config.columns = columns_.count <= few ? columns_.count : 0;
  return config;
}

void ElementwisePlan::Run(RowsGenerator::Function function, float* dst,
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
    RowsArgs args = {};
    args.dst = dst + offset(0);
    for (size_t i = 0; i < operands.size(); ++i) args.operands[i] = operands[i] + offset(i + 1);
    args.rows = std::min(rows_per_task_, rows_.count - row);
    args.columns = std::min(columns_per_task_, columns_.count - column);
    function(&args);
  });
}

}  // namespace tilewire
