// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/binary/sum_generator.h"

#include <cstddef>
#include <utility>

#include "engine/kernels/products/counted_loop.h"

namespace tilewire::binary {
namespace {

// Predicates as vcmppd takes them. What is not above or equal is below, or a NaN.
constexpr int kEqual = 0, kNotEqual = 4, kOrdered = 7, kNotAtMost = 22, kNotAtLeast = 25,
              kAbove = 30;
constexpr int kFloatBytes = 4;

// How far `turns` of a loop move each pointer.
std::array<int64_t, kSumTensors> Moves(const StridedLoop& loop, int64_t turns) {
  std::array<int64_t, kSumTensors> moves;
  for (int tensor = 0; tensor < kSumTensors; ++tensor) moves[tensor] = turns * loop.strides[tensor];
  return moves;
}

}  // namespace

SumGenerator::SumGenerator(absl::string_view name, const SumConfig& config)
    : Generator(name), config_(config) {}

void SumGenerator::Emit() {
  Preamble();
  config_.unit.Zero(this, Vector(kZero, false));
  config_.unit.Broadcast(this, Vector(kHalf, false), 0.5f, spare_);
  config_.unit.Broadcast(this, Vector(kOne, false), 1, spare_);
  for (int number : {kHalf, kOne}) {
    vcvtps2pd(Vector(number, false), config_.unit.WithBytes(lanes() * kFloatBytes).Vector(number));
  }
  mov(left_, ptr[args_ + offsetof(SumArgs, results)]);
  config_.of_runs ? EmitRuns() : EmitColumns();
  Postamble();
}

void SumGenerator::EmitRuns() {
  Xbyak::Label next;
  L(next);
  LoadPointers();
  if (reads_second()) {
    mov(spare_, ptr[args_ + offsetof(SumArgs, y)]);
    LoadDoubles(Xbyak::Xmm(kY0), spare_, /*single=*/true);
    vbroadcastsd(config_.unit.Wide(kY0), Xbyak::Xmm(kY0));
  }
  ZeroSums(kUnroll);
  config_.unit.Zero(this, Vector(kSingles, false));
  EmitLoops(0, [this] { return EmitRun(); });
  AddLanes();
  StoreResult(Xbyak::Xmm(0), 0, /*single=*/true);
  MoveArguments(config_.results, 1);
  dec(left_);
  jnz(next, T_NEAR);
}

void SumGenerator::EmitColumns() {
  for (int vectors : {kUnroll, 1}) {
    if (!config_.is_dense) break;
    EmitWhileLeft(this, left_, vectors * lanes(),
                  [&] { EmitColumnVectors(vectors, /*single=*/false); });
  }
  EmitWhileLeft(this, left_, 1, [&] { EmitColumnVectors(1, /*single=*/true); });
}

void SumGenerator::EmitColumnVectors(int vectors, bool single) {
  LoadPointers();
  mov(spare_, ptr[args_ + offsetof(SumArgs, y)]);
  for (int v = 0; reads_second() && v < vectors; ++v)
    LoadDoubles(Vector(kY0 + v, single), spare_ + v * lanes() * kFloatBytes, single);
  ZeroSums(vectors);
  EmitLoops(0, [&] {
    for (int v = 0; v < vectors; ++v)
      EmitTerm(Vector(v, single), v, Vector(kY0 + v, single), single);
    return Offsets{};
  });
  for (int v = 0; v < vectors; ++v) StoreResult(Vector(v, single), v, single);
  MoveArguments(config_.inner, single ? 1 : vectors * lanes());
}

template <typename Body>
SumGenerator::Offsets SumGenerator::EmitLoops(size_t level, const Body& body) {
  if (level == config_.summed.size()) return body();
  const StridedLoop& loop = config_.summed[level];
  const Xbyak::Reg64& turns = turns_[level];
  if (level == 0) {
    mov(turns, ptr[args_ + offsetof(SumArgs, outermost)]);
  } else {
    mov(turns, loop.count);
  }
  Xbyak::Label next;
  L(next);
  Offsets step = Moves(loop, 1);
  const Offsets inside = EmitLoops(level + 1, body);
  for (int tensor = 0; tensor < kSumTensors; ++tensor) step[tensor] -= inside[tensor];
  MovePointers(step);
  dec(turns);
  jnz(next, T_NEAR);
  return Moves(loop, loop.count);
}

SumGenerator::Offsets SumGenerator::EmitRun() {
  if (config_.summed.empty()) {
    mov(of_run_, ptr[args_ + offsetof(SumArgs, outermost)]);
  } else {
    mov(of_run_, config_.inner.count);
  }
  const Xbyak::Xmm y = Vector(kY0, false);
  for (int vectors : {kUnroll, 1}) {
    if (!config_.is_dense) break;
    EmitWhileLeft(this, of_run_, vectors * lanes(), [&] {
      for (int v = 0; v < vectors; ++v) EmitTerm(Vector(v, false), v, y, /*single=*/false);
      MovePointers(Moves(config_.inner, vectors * lanes()));
    });
  }
  EmitWhileLeft(this, of_run_, 1, [&] {
    EmitTerm(Xbyak::Xmm(kSingles), 0, Xbyak::Xmm(kY0), /*single=*/true);
    MovePointers(Moves(config_.inner, 1));
  });
  return Moves(config_.inner, config_.inner.count);
}

void SumGenerator::EmitTerm(const Xbyak::Xmm& sum, int vector, const Xbyak::Xmm& y, bool single) {
  const Xbyak::Xmm dy = Vector(kGradient, single);
  const int at = vector * lanes() * kFloatBytes;
  LoadDoubles(dy, dy_ + at, single);
  if (reads_first()) LoadDoubles(Vector(kFirst, single), x_ + at, single);
  AddTerm(sum, y, single);
  if (config_.writes_first) EmitFirst(dy, y, vector, single);
}

void SumGenerator::AddTerm(const Xbyak::Xmm& sum, const Xbyak::Xmm& y, bool single) {
  const Xbyak::Xmm dy = Vector(kGradient, single), x = Vector(kFirst, single);
  const Xbyak::Xmm slope = Vector(kSlope, single), zero = Vector(kZero, single);
  switch (config_.algorithm) {
    case BinaryAlgorithm::kAdd:
      return vaddpd(sum, sum, dy);
    case BinaryAlgorithm::kSub:
      return vsubpd(sum, sum, dy);
    case BinaryAlgorithm::kMul:
      Compare(x, zero, kNotEqual);
      return AddProduct(sum, x, dy, single);
    case BinaryAlgorithm::kPRelu:
      Compare(x, zero, kNotAtLeast);
      return AddProduct(sum, x, dy, single);
    case BinaryAlgorithm::kDiv:
      vmulpd(slope, y, y);
      vsubpd(x, zero, x);
      vdivpd(slope, x, slope);
      Compare(slope, zero, kNotEqual);
      return AddProduct(sum, slope, dy, single);
    default:
      Compare(x, y, config_.algorithm == BinaryAlgorithm::kMax ? kNotAtLeast : kNotAtMost);
      CompareToo(x, x, kOrdered);
      AddProduct(sum, Vector(kOne, single), dy, single);
      Compare(x, y, kEqual);
      AddProduct(sum, Vector(kHalf, single), dy, single);
  }
}

// A product with a slope of 0 is 0.
void SumGenerator::EmitFirst(const Xbyak::Xmm& dy, const Xbyak::Xmm& y, int vector, bool single) {
  const Xbyak::Xmm zero = Vector(kZero, single), x = Vector(kFirst, single);
  const Xbyak::Xmm result = Vector(kSlope, single), mask = Vector(kMask, single);
  const bool is_prelu = config_.algorithm == BinaryAlgorithm::kPRelu;
  const Xbyak::RegExp to = dx_ + vector * lanes() * kFloatBytes;
  if (!is_prelu && config_.algorithm != BinaryAlgorithm::kMul) return StoreFloats(to, dy, single);
  Compare(y, zero, kNotEqual);
  if (config_.unit.has_masks()) {
    vmulpd(result | mask_ | T_z, y, dy);
    if (is_prelu) {
      Compare(x, zero, kAbove);
      vmovapd(result | mask_, dy);
    }
  } else {
    vmulpd(result, y, dy);
    vandpd(result, result, mask);
    if (is_prelu) {
      Compare(x, zero, kAbove);
      vblendvpd(result, result, dy, mask);
    }
  }
  StoreFloats(to, result, single);
}

// Where the last comparison is true: what is 0 elsewhere may have an infinite factor.
void SumGenerator::AddProduct(const Xbyak::Xmm& sum, const Xbyak::Xmm& slope, const Xbyak::Xmm& dy,
                              bool single) {
  if (config_.unit.has_masks()) return vfmadd231pd(sum | mask_, slope, dy);
  const Xbyak::Xmm product = Vector(kSlope, single);
  vmulpd(product, slope, dy);
  vandpd(product, product, Vector(kMask, single));
  vaddpd(sum, sum, product);
}

void SumGenerator::Compare(const Xbyak::Xmm& a, const Xbyak::Xmm& b, int predicate) {
  if (config_.unit.has_masks()) return vcmppd(mask_, a, b, predicate);
  vcmppd(a.isXMM() ? Xbyak::Xmm(kMask) : Vector(kMask, false), a, b, predicate);
}

void SumGenerator::CompareToo(const Xbyak::Xmm& a, const Xbyak::Xmm& b, int predicate) {
  if (config_.unit.has_masks()) return vcmppd(mask_ | mask_, a, b, predicate);
  const Xbyak::Xmm mask = a.isXMM() ? Xbyak::Xmm(kMask) : Vector(kMask, false);
  const Xbyak::Xmm more = a.isXMM() ? Xbyak::Xmm(kSlope) : Vector(kSlope, false);
  vcmppd(more, a, b, predicate);
  vandpd(mask, mask, more);
}

void SumGenerator::LoadDoubles(const Xbyak::Xmm& to, const Xbyak::RegExp& from, bool single) {
  if (!single) return vcvtps2pd(to, ptr[from]);
  vmovss(to, ptr[from]);
  vcvtps2pd(to, to);
}

void SumGenerator::LoadPointers() {
  mov(dy_, ptr[args_ + offsetof(SumArgs, dy)]);
  if (reads_first()) mov(x_, ptr[args_ + offsetof(SumArgs, x)]);
  if (config_.writes_first) mov(dx_, ptr[args_ + offsetof(SumArgs, dx)]);
}

void SumGenerator::ZeroSums(int vectors) {
  for (int v = 0; v < vectors; ++v) config_.unit.Zero(this, Vector(v, false));
}

void SumGenerator::AddLanes() {
  for (const auto& [to, from] : {std::pair(0, 1), {2, 3}, {0, 2}})
    vaddpd(Vector(to, false), Vector(to, false), Vector(from, false));
  const Xbyak::Xmm sum(0), upper(kSlope);
  if (config_.unit.bytes() == 64) {
    vextractf64x4(Xbyak::Ymm(kSlope), Xbyak::Zmm(0), 1);
    vaddpd(Xbyak::Ymm(0), Xbyak::Ymm(0), Xbyak::Ymm(kSlope));
  }
  vextractf128(upper, Xbyak::Ymm(0), 1);
  vaddpd(sum, sum, upper);
  vunpckhpd(upper, sum, sum);
  vaddsd(sum, sum, upper);
  vaddsd(sum, sum, Xbyak::Xmm(kSingles));
}

void SumGenerator::StoreResult(const Xbyak::Xmm& sum, int vector, bool single) {
  mov(spare_, ptr[args_ + offsetof(SumArgs, to)]);
  const Xbyak::Address to = ptr[spare_ + vector * lanes() * result_bytes()];
  if (config_.of_parts) return single ? vmovsd(to, sum) : vmovupd(to, sum);
  StoreFloats(spare_ + vector * lanes() * result_bytes(), sum, single);
}

void SumGenerator::StoreFloats(const Xbyak::RegExp& to, const Xbyak::Xmm& doubles, bool single) {
  if (single) {
    vcvtsd2ss(doubles, doubles, doubles);
    return vmovss(ptr[to], doubles);
  }
  const Xbyak::Xmm rounded = config_.unit.WithBytes(lanes() * kFloatBytes).Vector(doubles.getIdx());
  vcvtpd2ps(rounded, doubles);
  vmovups(ptr[to], rounded);
}

void SumGenerator::MovePointers(const Offsets& steps) {
  AddTo(dy_, steps[kDy] * kFloatBytes);
  if (reads_first()) AddTo(x_, steps[kX] * kFloatBytes);
  if (config_.writes_first) AddTo(dx_, steps[kDx] * kFloatBytes);
}

void SumGenerator::MoveArguments(const StridedLoop& loop, int turns) {
  const Offsets moves = Moves(loop, turns);
  AddTo(qword[args_ + offsetof(SumArgs, dy)], moves[kDy] * kFloatBytes);
  if (reads_first()) AddTo(qword[args_ + offsetof(SumArgs, x)], moves[kX] * kFloatBytes);
  if (reads_second()) AddTo(qword[args_ + offsetof(SumArgs, y)], moves[kY] * kFloatBytes);
  if (config_.writes_first) AddTo(qword[args_ + offsetof(SumArgs, dx)], moves[kDx] * kFloatBytes);
  AddTo(qword[args_ + offsetof(SumArgs, to)], moves[kTo] * result_bytes());
}

void SumGenerator::AddTo(const Xbyak::Operand& pointer, int64_t bytes) {
  if (bytes == 0) return;
  if (bytes == static_cast<int32_t>(bytes)) return add(pointer, static_cast<uint32_t>(bytes));
  mov(spare_, bytes);
  add(pointer, spare_);
}

}  // namespace tilewire::binary
