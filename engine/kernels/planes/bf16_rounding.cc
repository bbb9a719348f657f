// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/planes/bf16_rounding.h"

#include <algorithm>

namespace tilewire {
namespace {

constexpr int kLinesAtOnce = 4;

}  // namespace

uint64_t Bf16Rounding::MaskOf(int64_t count, int64_t first) {
  const int64_t lanes = std::clamp<int64_t>(count - first, 0, 16);
  return (uint64_t{1} << lanes) - 1;
}

void Bf16Rounding::Round(const float* from, int64_t count, std::byte* to) const {
  const auto round = [&](int64_t line, int64_t lines, int64_t numbers) {
    if (lines == 0) return;
    const auto* src = reinterpret_cast<const std::byte*>(from + line * kBf16LineNumbers);
    const Bf16RoundingArgs args = {.src = src,
                                   .second = src + kBf16LineBytes,
                                   .dst = to + line * kBf16LineBytes,
                                   .src_step = 2 * kBf16LineBytes,
                                   .lines = lines,
                                   .first_mask = MaskOf(numbers, 0),
                                   .second_mask = MaskOf(numbers, 16)};
    entry<Bf16RoundingFunction>()(&args);
  };
  const int64_t whole = count / kBf16LineNumbers, rest = count % kBf16LineNumbers;
  round(0, whole, kBf16LineNumbers);
  round(whole, rest == 0 ? 0 : 1, rest);
}

void Bf16Rounding::Emit() {
  Xbyak::Label many, one, last, done;
  const auto argument = [this](size_t offset) { return qword[args_ + static_cast<int>(offset)]; };
  mov(src_, argument(offsetof(Bf16RoundingArgs, src)));
  mov(second_, argument(offsetof(Bf16RoundingArgs, second)));
  mov(dst_, argument(offsetof(Bf16RoundingArgs, dst)));
  mov(step_, argument(offsetof(Bf16RoundingArgs, src_step)));
  mov(left_, argument(offsetof(Bf16RoundingArgs, lines)));
  kmovw(first_mask_, word[args_ + static_cast<int>(offsetof(Bf16RoundingArgs, first_mask))]);
  kmovw(second_mask_, word[args_ + static_cast<int>(offsetof(Bf16RoundingArgs, second_mask))]);
  L(many);
  cmp(left_, kLinesAtOnce);
  jl(last, T_NEAR);
  for (int line = 0; line < kLinesAtOnce; ++line) EmitLine(line);
  add(dst_, kLinesAtOnce * static_cast<int>(kBf16LineBytes));
  sub(left_, kLinesAtOnce);
  jmp(many, T_NEAR);
  L(last);
  test(left_, left_);
  jz(done, T_NEAR);
  L(one);
  EmitLine(0);
  add(dst_, static_cast<int>(kBf16LineBytes));
  dec(left_);
  jnz(one, T_NEAR);
  L(done);
  vzeroupper();
  ret();
}

void Bf16Rounding::EmitLine(int line) {
  const Xbyak::Zmm first(2 * line), second(2 * line + 1);
  vmovups(first | first_mask_ | T_z, ptr[src_]);
  vmovups(second | second_mask_ | T_z, ptr[second_]);
  vcvtne2ps2bf16(first, second, first);
  vmovups(ptr[dst_ + line * static_cast<int>(kBf16LineBytes)], first);
  add(src_, step_);
  add(second_, step_);
}

}  // namespace tilewire
