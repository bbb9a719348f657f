// SPDX-License-Identifier: Apache-2.0
//
// Outputs whose window lies inside src along W take the middle's loop, several at a time; the
// others, at the edges, are emitted one by one with the taps that remain of their windows.
#include "engine/primitives/pooling/row_generator.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>

#include "engine/base/check.h"
#include "engine/jit/extremum.h"

namespace tilewire::pooling {
RowGenerator::RowGenerator(const RowShape& shape, absl::string_view name)
    : Generator(name),
      shape_(shape),
      unit_(shape.unit.WithBytes(vector_bytes())),
      conversion_(this, ConversionUnit(), shape.tail_lanes,
                  {.spare = rax,
                   .scratch = {registers() - 6, registers() - 5, registers() - 4},
                   .tail = tail_,
                   .mask = spare_mask_}) {
  TILEWIRE_CHECK(shape.groups == 1 || shape.out <= RowShape::kShortRow,
                 "several groups of short rows only");
}

void RowGenerator::Emit() {
  Preamble();
  LoadTailMask();
  if (is_bf16()) LoadOrderConstants();
  mov(src_, ptr[rdi + offsetof(RowArgs, src)]);
  mov(dst_, ptr[rdi + offsetof(RowArgs, dst)]);
  if (shape_.saves_places) {
    mov(places_, ptr[rdi + offsetof(RowArgs, places)]);
    unit_.BroadcastBits(this, One(), 1, rax);
  }
  const auto first = [this](int64_t out) { return out * shape_.stride - shape_.padding; };
  int64_t middle = 0;
  while (middle < shape_.out && first(middle) < 0) ++middle;
  int64_t end = middle;
  while (end < shape_.out && first(end) + shape_.kernel <= shape_.in) ++end;
  for (int64_t out = 0; out < shape_.out; ++out) {
    if (out == middle && end > middle) {
      EmitMiddle(middle, end);
      out = end - 1;
      continue;
    }
    const int64_t begin = std::max<int64_t>(first(out), 0);
    const int64_t taps = std::min(first(out) + shape_.kernel, shape_.in) - begin;
    EmitOutputs(src_, begin, dst_, out, 1, {begin - first(out), taps});
  }
  Postamble();
  if (!is_max()) conversion_.EmitTable();
}

void RowGenerator::LoadTailMask() {
  if (!has_tail()) return;
  mov(rax, (uint64_t{1} << shape_.tail_lanes) - 1);
  kmovq(tail_, rax);
}

void RowGenerator::EmitMiddle(int64_t begin, int64_t end) {
  lea(src_step_, ptr[src_ + (begin * shape_.stride - shape_.padding) * shape_.src_pixel_bytes]);
  lea(dst_step_, ptr[dst_ + begin * shape_.dst_pixel_bytes]);
  if (shape_.saves_places) lea(places_step_, ptr[places_ + begin * place_pixel_bytes()]);
  const Taps whole = {0, shape_.kernel};
  const int64_t steps = (end - begin) / step();
  if (steps > 0) {
    Xbyak::Label next;
    mov(steps_, steps);
    L(next);
    EmitOutputs(src_step_, 0, dst_step_, 0, step(), whole);
    add(src_step_, static_cast<uint32_t>(step() * shape_.stride * shape_.src_pixel_bytes));
    add(dst_step_, static_cast<uint32_t>(step() * shape_.dst_pixel_bytes));
    if (shape_.saves_places) add(places_step_, static_cast<uint32_t>(step() * place_pixel_bytes()));
    dec(steps_);
    jnz(next, T_NEAR);
  }
  const int rest = static_cast<int>((end - begin) % step());
  if (rest > 0) EmitOutputs(src_step_, 0, dst_step_, 0, rest, whole);
}

void RowGenerator::EmitOutputs(const Xbyak::Reg64& src, int64_t src_pixel, const Xbyak::Reg64& dst,
                               int64_t dst_pixel, int count, const Taps& taps) {
  const int vectors = count * shape_.groups;
  BroadcastIdentity(Vector(0));
  for (int i = 1; i < vectors; ++i) vmovups(Vector(i), Vector(0));
  if (shape_.saves_places) BeginPlaces(vectors, taps.first);
  Xbyak::Label next_depth, next_height;
  lea(depth_src_, ptr[src + src_pixel * shape_.src_pixel_bytes]);
  mov(depths_, ptr[rdi + offsetof(RowArgs, depths)]);
  L(next_depth);
  mov(height_src_, depth_src_);
  mov(heights_, ptr[rdi + offsetof(RowArgs, heights)]);
  if (shape_.saves_places) mov(tap_, depth_tap_);
  L(next_height);
  if (shape_.saves_places) BroadcastTap();
  for (int64_t tap = 0; tap < taps.count; ++tap) {
    if (shape_.saves_places && tap > 0) vpaddd(Tap(), Tap(), One());
    for (int i = 0; i < vectors; ++i) {
      const int64_t pixel = i % count * shape_.stride + tap;
      EmitTap(i,
              height_src_ + (pixel * shape_.src_pixel_bytes + i / count * shape_.src_group_bytes));
    }
  }
  add(height_src_, ptr[rdi + offsetof(RowArgs, height_stride_bytes)]);
  if (shape_.saves_places) add(tap_, static_cast<uint32_t>(shape_.kernel));
  dec(heights_);
  jnz(next_height, T_NEAR);
  add(depth_src_, ptr[rdi + offsetof(RowArgs, depth_stride_bytes)]);
  if (shape_.saves_places) add(depth_tap_, static_cast<uint32_t>(shape_.height * shape_.kernel));
  dec(depths_);
  jnz(next_depth, T_NEAR);
  if (!is_max()) EmitDivision(vectors, taps.count);
  for (int i = 0; is_bf16() && i < vectors; ++i) {
    vpaddw(Vector(i), Vector(i), LowestWord());
    EmitNegativeReversal(Vector(i));
  }
  for (int i = 0; i < vectors; ++i) {
    EmitStore(i, dst + ((dst_pixel + i % count) * shape_.dst_pixel_bytes +
                        i / count * shape_.dst_group_bytes));
  }
  const Xbyak::Reg64 places = dst.getIdx() == dst_.getIdx() ? places_ : places_step_;
  for (int i = 0; shape_.saves_places && i < vectors; ++i)
    EmitStorePlace(i, places + (dst_pixel + i) * place_pixel_bytes());
}

void RowGenerator::BeginPlaces(int vectors, int64_t first_tap) {
  mov(depth_tap_, ptr[rdi + offsetof(RowArgs, tap)]);
  add(depth_tap_, static_cast<uint32_t>(first_tap));
  mov(tap_, depth_tap_);
  BroadcastTap();
  for (int i = 0; i < vectors; ++i) vmovups(Place(i), Tap());
}

void RowGenerator::BroadcastTap() {
  if (is_wide()) return vpbroadcastd(Tap(), tap_.cvt32());
  const Xbyak::Xmm low(Tap().getIdx());
  vmovd(low, tap_.cvt32());
  vpbroadcastd(Tap(), low);
}

// An element is taken where it is not less than or equal to what is held, which is so of NaN, and
// what is held is a number.
void RowGenerator::EmitPlacedMaximum(int output, const Xbyak::RegExp& value) {
  constexpr int kNotLessEqual = 6, kOrdered = jit::kOrderedPredicate;
  const Xbyak::Xmm held = Vector(output), place = Place(output), loaded = Scratch(0);
  LoadTap(loaded, value);
  if (shape_.unit.has_masks()) {
    const Xbyak::Opmask taken = output % 2 == 0 ? ordered_ : spare_mask_;
    vcmpps(taken, held, held, kOrdered);
    vcmpps(taken | taken, loaded, held, kNotLessEqual);
    vmovaps(held | taken, loaded);
    vmovdqa32(place | taken, Tap());
    return;
  }
  const Xbyak::Xmm taken = Scratch(1), ordered = Scratch(2);
  vcmpps(ordered, held, held, kOrdered);
  vcmpps(taken, loaded, held, kNotLessEqual);
  vandps(taken, taken, ordered);
  vblendvps(held, held, loaded, taken);
  vblendvps(place, place, Tap(), taken);
}

// A byte of each lane.
void RowGenerator::EmitStorePlace(int output, const Xbyak::RegExp& to) {
  const Xbyak::Xmm place = Place(output);
  if (shape_.unit.has_masks()) {
    has_tail() ? vpmovdb(ptr[to] | tail_, place) : vpmovdb(ptr[to], place);
    return;
  }
  const Xbyak::Xmm low(place.getIdx()), high(Scratch(0).getIdx());
  vextracti128(high, Xbyak::Ymm(place.getIdx()), 1);
  vpackusdw(low, low, high);
  vpackuswb(low, low, low);
  vmovq(ptr[to], low);
}

void RowGenerator::EmitTap(int output, const Xbyak::RegExp& value) {
  const Xbyak::Xmm result = Vector(output);
  if (shape_.saves_places) return EmitPlacedMaximum(output, value);
  if (is_bf16()) return EmitBf16Maximum(result, value);
  if (is_max()) {
    return is_float() ? EmitFloatMaximum(result, value) : EmitIntegerMaximum(result, value);
  }
  if (is_float() && !has_tail()) {
    vaddps(result, result, ptr[value]);
    return;
  }
  LoadTap(Scratch(0), value);
  if (is_float()) {
    vaddps(result, result, Scratch(0));
  } else {
    vpaddd(result, result, Scratch(0));
  }
}

// 32-bit lanes, or the bytes of a maximum.
void RowGenerator::LoadTap(const Xbyak::Xmm& to, const Xbyak::RegExp& from) {
  const Xbyak::Xmm lanes = has_tail() ? to | tail_ | T_z : to;
  if (!is_byte()) {
    vmovups(lanes, ptr[from]);
  } else if (!is_max()) {
    shape_.type == DataType::kU8 ? vpmovzxbd(lanes, ptr[from]) : vpmovsxbd(lanes, ptr[from]);
  } else if (has_tail()) {
    vmovdqu8(lanes, ptr[from]);
  } else if (vector_bytes() == 8) {
    vmovq(to, ptr[from]);
  } else {
    vmovups(to, ptr[from]);
  }
}

void RowGenerator::EmitFloatMaximum(const Xbyak::Xmm& result, const Xbyak::RegExp& value) {
  const Xbyak::Xmm loaded = Scratch(0);
  const Xbyak::Address memory = ptr[value];
  const bool in_memory = shape_.unit.has_masks() && !has_tail();
  if (!in_memory) LoadTap(loaded, value);
  const Xbyak::Operand& other = in_memory ? static_cast<const Xbyak::Operand&>(memory) : loaded;
  jit::EmitRunningMaximum(this, shape_.unit, result, other, Scratch(1), ordered_);
}

// The bits of bf16 as words in the order of the numbers, from -infinity, which becomes 0, to
// +infinity, with every NaN above: negative numbers are reversed, and the distance from -infinity
// is unsigned.
void RowGenerator::LoadOrderConstants() {
  constexpr uint32_t kMagnitudes = 0x7FFF7FFF, kLowest = 0x807F807F;  // -infinity, reversed
  unit_.Broadcast(this, Magnitude(), std::bit_cast<float>(kMagnitudes), rax);
  unit_.Broadcast(this, LowestWord(), std::bit_cast<float>(kLowest), rax);
}

// words ^= words < 0 ? 0x7FFF : 0
void RowGenerator::EmitNegativeReversal(const Xbyak::Xmm& words) {
  constexpr uint8_t kXorOfAnd = 0x78;
  const Xbyak::Xmm signs = Scratch(1);
  vpsraw(signs, words, 15);
  vpternlogd(words, signs, Magnitude(), kXorOfAnd);
}

void RowGenerator::EmitBf16Maximum(const Xbyak::Xmm& result, const Xbyak::RegExp& value) {
  const Xbyak::Xmm words = Scratch(0);
  vmovups(words, ptr[value]);
  EmitNegativeReversal(words);
  vpsubw(words, words, LowestWord());
  vpmaxuw(result, result, words);
}

void RowGenerator::EmitIntegerMaximum(const Xbyak::Xmm& result, const Xbyak::RegExp& value) {
  const bool through_register = has_tail() || vector_bytes() == 8;
  const Xbyak::Xmm loaded = Scratch(0);
  const Xbyak::Address memory = ptr[value];
  if (through_register) LoadTap(loaded, value);
  const Xbyak::Operand& operand =
      through_register ? static_cast<const Xbyak::Operand&>(loaded) : memory;
  if (shape_.type == DataType::kU8) {
    vpmaxub(result, result, operand);
  } else if (shape_.type == DataType::kS8) {
    vpmaxsb(result, result, operand);
  } else {
    vpmaxsd(result, result, operand);
  }
}

void RowGenerator::EmitDivision(int vectors, int64_t taps) {
  const Xbyak::Xmm divisor = Scratch(0);
  if (shape_.algorithm == PoolingAlgorithm::kAvgIncludePadding) {
    unit_.Broadcast(this, divisor, static_cast<float>(shape_.window), rax);
  } else {
    unit_.Broadcast(this, divisor, static_cast<float>(taps), rax);
    vbroadcastss(Scratch(1), ptr[rdi + offsetof(RowArgs, rows)]);
    vmulps(divisor, divisor, Scratch(1));
  }
  for (int i = 0; i < vectors; ++i) {
    if (!is_float()) vcvtdq2ps(Vector(i), Vector(i));
    vdivps(Vector(i), Vector(i), divisor);
  }
  conversion_.BeginStores(shape_.type);
}

void RowGenerator::EmitStore(int output, const Xbyak::RegExp& to) {
  const Xbyak::Xmm value = Vector(output);
  if (!is_max()) {
    conversion_.Store(shape_.type, value, to, has_tail());
  } else if (is_byte() && has_tail()) {
    vmovdqu8(ptr[to] | tail_, value);
  } else if (has_tail()) {
    vmovups(ptr[to] | tail_, value);
  } else if (vector_bytes() == 8) {
    vmovq(ptr[to], value);
  } else {
    vmovups(ptr[to], value);
  }
}

void RowGenerator::BroadcastIdentity(const Xbyak::Xmm& vector) {
  uint32_t bits = 0;
  if (is_max() && is_float()) {
    bits = std::bit_cast<uint32_t>(-std::numeric_limits<float>::infinity());
  } else if (is_max() && shape_.type == DataType::kS8) {
    bits = 0x80808080;
  } else if (is_max() && shape_.type == DataType::kS32) {
    bits = 0x80000000;
  }
  unit_.Broadcast(this, vector, std::bit_cast<float>(bits), rax);
}

}  // namespace tilewire::pooling
