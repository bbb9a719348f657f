// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/rnn/cell_generator.h"

#include <cstddef>
#include <utility>

namespace tilewire::rnn {

using functions::RnnCell;

CellGenerator::CellGenerator(absl::string_view name, const CellConfig& config)
    : Generator(name), config_(config) {
  const Xbyak::Reg64 tables[] = {rax, rbx, r11, r12};
  std::vector<functions::RnnActivation> ops = config.functions;
  if (config.clip > 0)
    ops.push_back({functions::EltwiseAlgorithm::kClip, -config.clip, config.clip});
  for (size_t i = 0; i < ops.size(); ++i) {
    emitters_.push_back(std::make_unique<jit::EltwiseEmitter>(
        this, config.unit, ops[i],
        jit::EltwiseEmitter::Registers{.table = tables[i],
                                       .scratch = config.unit.RegistersFrom(kScratch)}));
  }
}

void CellGenerator::Emit() {
  Preamble();
  const std::pair<Xbyak::Reg64, size_t> pointers[] = {{gates_, offsetof(CellArgs, gates)},
                                                      {state_, offsetof(CellArgs, state)},
                                                      {memory_, offsetof(CellArgs, memory)},
                                                      {aside_, offsetof(CellArgs, aside)},
                                                      {peephole_, offsetof(CellArgs, peephole)}};
  for (const auto& [to, offset] : pointers) mov(to, ptr[rdi + offset]);
  for (const auto& emitter : emitters_) emitter->LoadTable();
  Xbyak::Label next;
  xor_(at_, at_);
  L(next);
  if (config_.cell == RnnCell::kLstm) EmitLstm();
  if (config_.cell == RnnCell::kVanillaRnn) EmitVanilla();
  if (config_.cell == RnnCell::kLbrGru) EmitLinearReset();
  if (config_.cell == RnnCell::kGru) {
    config_.part == CellPart::kReset ? EmitReset() : EmitFinal();
  }
  add(at_, config_.unit.bytes());
  cmp(at_, static_cast<int>(config_.states * 4));
  jl(next, T_NEAR);
  Postamble();
  for (const auto& emitter : emitters_) emitter->EmitTable();
}

void CellGenerator::EmitLstm() {
  const Xbyak::Xmm i = Vector(0), f = Vector(1), c = Vector(2), o = Vector(3), memory = Vector(4);
  vmovups(i, Gate(0));
  vmovups(f, Gate(1));
  vmovups(c, Gate(2));
  vmovups(o, Gate(3));
  vmovups(memory, ptr[memory_ + at_]);
  if (config_.peephole) {
    vfmadd231ps(i, memory, Peephole(0));
    vfmadd231ps(f, memory, Peephole(1));
  }
  ApplyToSum(0, i);
  config_.couples_gates ? OneMinus(f, i) : ApplyToSum(0, f);
  ApplyToSum(1, c);
  vmulps(memory, memory, f);
  vfmadd231ps(memory, i, c);
  vmovups(ptr[memory_ + at_], memory);
  if (config_.peephole) vfmadd231ps(o, memory, Peephole(2));
  ApplyToSum(0, o);
  Apply(2, memory);
  vmulps(o, o, memory);
  vmovups(ptr[state_ + at_], o);
}

void CellGenerator::EmitVanilla() {
  vmovups(Vector(0), Gate(0));
  ApplyToSum(0, Vector(0));
  vmovups(ptr[state_ + at_], Vector(0));
}

void CellGenerator::EmitReset() {
  const Xbyak::Xmm u = Vector(0), r = Vector(1);
  vmovups(u, Gate(0));
  vmovups(r, Gate(1));
  ApplyToSum(0, u);
  ApplyToSum(0, r);
  vmovups(Gate(0), u);
  vmulps(r, r, ptr[state_ + at_]);
  vmovups(ptr[aside_ + at_], r);
}

void CellGenerator::EmitFinal() {
  const Xbyak::Xmm u = Vector(0), o = Vector(2);
  vmovups(o, Gate(2));
  ApplyToSum(1, o);
  vmovups(u, Gate(0));
  StoreBetween(u, o);
}

void CellGenerator::EmitLinearReset() {
  const Xbyak::Xmm u = Vector(0), r = Vector(1), o = Vector(2);
  vmovups(u, Gate(0));
  vmovups(r, Gate(1));
  vmovups(o, Gate(2));
  ApplyToSum(0, u);
  ApplyToSum(0, r);
  vfmadd231ps(o, r, ptr[aside_ + at_]);
  ApplyToSum(1, o);
  StoreBetween(u, o);
}

void CellGenerator::StoreBetween(const Xbyak::Xmm& u, const Xbyak::Xmm& o) {
  const Xbyak::Xmm rest = Vector(5);
  OneMinus(rest, u);
  vmulps(o, o, rest);
  vfmadd231ps(o, u, ptr[state_ + at_]);
  vmovups(ptr[state_ + at_], o);
}

void CellGenerator::ApplyToSum(int function, const Xbyak::Xmm& v) {
  if (config_.clip > 0) emitters_.back()->Apply({v.getIdx()});
  Apply(function, v);
}

void CellGenerator::Apply(int function, const Xbyak::Xmm& v) {
  emitters_[function]->Apply({v.getIdx()});
}

void CellGenerator::OneMinus(const Xbyak::Xmm& to, const Xbyak::Xmm& v) {
  const Xbyak::Xmm one = Vector(kScratch);
  config_.unit.Broadcast(this, one, 1.0f, spare_);
  vsubps(to, one, v);
}

Xbyak::Address CellGenerator::Gate(int gate) {
  return ptr[gates_ + at_ + static_cast<int>(gate * config_.states * 4)];
}

Xbyak::Address CellGenerator::Peephole(int gate) {
  return ptr[peephole_ + at_ + static_cast<int>(gate * config_.states * 4)];
}

}  // namespace tilewire::rnn
