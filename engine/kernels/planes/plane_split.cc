// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/planes/plane_split.h"

namespace tilewire {

void PlaneSplit::Emit() {
  Preamble();
  LoadConstants();
  Xbyak::Label step, row;
  L(step);
  mov(src_, src_step_);
  mov(dst_, dst_step_);
  mov(rows_left_, ptr[args_ + offsetof(PlaneSplitArgs, rows)]);
  L(row);
  EmitLine();
  add(src_, row_bytes_);
  add(dst_, static_cast<int>(kPlaneLineBytes));
  dec(rows_left_);
  jnz(row, T_NEAR);
  add(src_step_, ptr[args_ + offsetof(PlaneSplitArgs, step_bytes)]);
  for (int plane = 0; plane < planes_; ++plane) add(dst_step_, plane_bytes_);
  dec(steps_left_);
  jnz(step, T_NEAR);
  NoteBeyond();
  Postamble();
}

void PlaneSplit::LoadConstants() {
  // For lines of bf16 the bits of the exponents, else the upper halves.
  mov(eax, lines_ == Lines::kOneAfterTheOther ? 0x7F807F80 : 0xFFFF0000);
  vpbroadcastd(upper_bits_, eax);
  mov(eax, planes_ == 1 ? 0x7FFF : 0x8000);  // to even: half, but for the last kept bit
  vpbroadcastd(half_, eax);
  mov(eax, 1);
  vpbroadcastd(one_, eax);
  kxord(beyond_mask_, beyond_mask_, beyond_mask_);
  for (const Xbyak::Zmm& v : {zero_, beyond_[0], beyond_[1]}) vpxord(v, v, v);
  mov(rax, ptr[args_ + offsetof(PlaneSplitArgs, first_mask)]);
  kmovw(first_mask_, eax);
  mov(rax, ptr[args_ + offsetof(PlaneSplitArgs, second_mask)]);
  kmovw(second_mask_, eax);
  mov(src_step_, ptr[args_ + offsetof(PlaneSplitArgs, src)]);
  mov(dst_step_, ptr[args_ + offsetof(PlaneSplitArgs, dst)]);
  mov(row_bytes_, ptr[args_ + offsetof(PlaneSplitArgs, row_bytes)]);
  mov(pair_bytes_, ptr[args_ + offsetof(PlaneSplitArgs, pair_bytes)]);
  mov(steps_left_, ptr[args_ + offsetof(PlaneSplitArgs, steps)]);
  mov(plane_bytes_, ptr[args_ + offsetof(PlaneSplitArgs, plane_bytes)]);
}

void PlaneSplit::EmitLine() {
  vmovups(first_ | first_mask_ | T_z, ptr[src_]);
  vmovups(second_ | second_mask_ | T_z, ptr[src_ + pair_bytes_]);
  if (lines_ == Lines::kOneAfterTheOther) return EmitNarrowLine();
  if (planes_ == 1) {
    MarkBeyond();  // those whose rounding is not an infinity
    EmitEvenPlane();
  }
  for (int plane = 0; plane < planes_ && planes_ > 1; ++plane) EmitPlane(plane);
  MarkBeyond();
}

// Adds 0 times what is left of each number: NaN for an infinity or NaN, else 0.
void PlaneSplit::MarkBeyond() {
  vfmadd231ps(beyond_[0], first_, zero_);
  vfmadd231ps(beyond_[1], second_, zero_);
}

void PlaneSplit::EmitNarrowLine() {
  vcvtne2ps2bf16(line_, second_, first_);
  vmovups(ptr[dst_], line_);
  vpandd(first_, line_, upper_bits_);
  vpcmpeqw(line_mask_, first_, upper_bits_);
  kord(beyond_mask_, beyond_mask_, line_mask_);
}

void PlaneSplit::EmitEvenPlane() {
  RoundToEven(first_, first_plane_);
  RoundToEven(second_, second_plane_);
  vpsrld(line_, first_, 16);
  vpandd(second_, second_, upper_bits_);
  vpord(line_, line_, second_);
  vmovups(ptr[dst_], line_);
}

// Half of the last kept bit, less one where that bit is even.
void PlaneSplit::RoundToEven(const Xbyak::Zmm& number, const Xbyak::Zmm& spare) {
  vpsrld(spare, number, 16);
  vpandd(spare, spare, one_);
  vpaddd(number, number, half_);
  vpaddd(number, number, spare);
  vpandd(number, number, upper_bits_);
}

void PlaneSplit::EmitPlane(int plane) {
  constexpr int kFirstOrSelected = 0xF8;  // a | (b & c)
  const bool is_last = plane == planes_ - 1, is_all_that_is_left = plane == 2;
  const Xbyak::Zmm& first = is_all_that_is_left ? first_ : first_plane_;
  const Xbyak::Zmm& second = is_all_that_is_left ? second_ : second_plane_;
  if (!is_all_that_is_left) {
    vpaddd(first, first_, half_);
    vpaddd(second, second_, half_);
  }
  vpsrld(line_, first, 16);
  vpternlogd(line_, second, upper_bits_, kFirstOrSelected);
  const Xbyak::RegExp planes[] = {dst_ + 0, dst_ + plane_bytes_, dst_ + plane_bytes_ * 2};
  vmovups(ptr[planes[plane]], line_);
  if (is_last) return;
  for (const Xbyak::Zmm& v : {first, second}) vpandd(v, v, upper_bits_);
  vsubps(first_, first_, first);
  vsubps(second_, second_, second);
}

void PlaneSplit::NoteBeyond() {
  constexpr int kUnordered = 3;  // a predicate of vcmpps
  Xbyak::Label none;
  if (lines_ == Lines::kInTurn) vcmpps(beyond_mask_, beyond_[0], beyond_[1], kUnordered);
  kortestd(beyond_mask_, beyond_mask_);
  jz(none);
  mov(qword[args_ + offsetof(PlaneSplitArgs, beyond)], 1);
  L(none);
}

}  // namespace tilewire
