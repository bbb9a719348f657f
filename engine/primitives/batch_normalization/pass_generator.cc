// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/batch_normalization/pass_generator.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "engine/base/cache_line.h"
#include "engine/jit/vector_math.h"

namespace tilewire::batch_normalization {
namespace {

constexpr auto kGreater = static_cast<uint8_t>(jit::VectorMath::Predicate::kGreater);
constexpr auto kLess = static_cast<uint8_t>(jit::VectorMath::Predicate::kLess);

}  // namespace

PassGenerator::PassGenerator(absl::string_view name, Pass pass, const VectorUnit& unit,
                             const PixelBlocks& blocks, const PassOptions& options)
    : Generator(name),
      pass_(pass),
      unit_(unit),
      options_(options),
      vectors_(static_cast<int>(blocks.lanes()) / unit.lanes()),
      pixel_bytes_(blocks.pixel_stride() * static_cast<int64_t>(sizeof(float))),
      line_bytes_(blocks.lanes() * static_cast<int64_t>(sizeof(float))) {}

void PassGenerator::Emit() {
  mov(lines_, ptr[args_ + offsetof(PassArgs, lines)]);
  mov(to_, ptr[args_ + offsetof(PassArgs, to)]);
  if (pass_ == Pass::kStatistics) {
    EmitStatistics();
  } else if (pass_ == Pass::kGradientSums) {
    EmitGradientSums();
  } else {
    EmitElements();
  }
  if (options_.streams) sfence();  // before other threads are told that the piece has ended
  vzeroupper();
  ret();
  EmitConstants();
}

void PassGenerator::EmitConstants() {
  L(channels_at_);
  for (uint32_t channel = 0; HasBits() && channel < 8; ++channel) dd(1u << channel);
}

void PassGenerator::EmitStatistics() {
  const Xbyak::Xmm over_pixels = Vector(10);
  for (int i = 0; i < 2 * kSlots; ++i) unit_.Zero(this, Vector(i));
  ForEachVector([&](const Slot& slot) { vaddps(Sum(slot), Sum(slot), At(x_, slot)); });
  AddSlots(0);
  vbroadcastss(over_pixels, ptr[args_ + offsetof(PassArgs, over_pixels)]);
  for (int v = 0; v < vectors_; ++v) vmulps(Line(0, v), Vector(v), over_pixels);
  StoreSums(8, 0);
  for (int i = 0; i < kSlots; ++i) unit_.Zero(this, Vector(i));
  ForEachVector([&](const Slot& slot) {
    const Xbyak::Xmm d = Vector(12 + slot.index);
    vmovups(d, At(x_, slot));
    vsubps(d, d, Line(0, slot.vector));
    vaddps(Sum(slot), Sum(slot), d);
    vfmadd231ps(MoreSum(slot), d, d);
  });
  AddSlots(0);
  AddSlots(kSlots);
  StoreSums(0, 1);
  StoreSums(kSlots, 2);
}

void PassGenerator::EmitGradientSums() {
  LoadLine(0);
  LoadConstants();
  for (int i = 0; i < 2 * kSlots; ++i) unit_.Zero(this, Vector(i));
  ForEachVector([&](const Slot& slot) {
    const Xbyak::Xmm d = Vector(12 + slot.index % 2), dy = Vector(10 + slot.index % 2);
    vmovups(d, At(x_, slot));
    vsubps(d, d, Line(0, slot.vector));
    LoadGradient(slot, dy);
    if (WritesMasked()) vmovups(At(masked_, slot), dy);
    vaddps(Sum(slot), Sum(slot), dy);
    vfmadd231ps(MoreSum(slot), d, dy);
  });
  AddSlots(0);
  AddSlots(kSlots);
  StoreSums(0, 0);
  StoreSums(kSlots, 1);
}

void PassGenerator::EmitElements() {
  const int64_t lines = pass_ == Pass::kNormalization ? kNormalizationLines : kGradientLines;
  for (int line = 0; line < lines; ++line) LoadLine(line);
  LoadConstants();
  ForEachVector([this](const Slot& slot) { EmitElement(slot); });
}

void PassGenerator::EmitElement(const Slot& slot) {
  const Xbyak::Xmm element = Sum(slot), dy = Vector(4 + slot.index % 2);
  const int v = slot.vector;
  if (IsOfGradient() && HasBits()) LoadGradient(slot, dy);
  const auto times_gradient = [&](const auto& emit) { HasBits() ? emit(dy) : emit(At(dy_, slot)); };
  if (pass_ == Pass::kScaling) {
    times_gradient([&](const Xbyak::Operand& by) { vmulps(element, Line(1, v), by); });
  } else {
    vmovups(element, At(x_, slot));
    vsubps(element, element, Line(0, v));
    if (pass_ == Pass::kNormalization) {
      vfmadd213ps(element, Line(1, v), Line(2, v));
      if (Adds()) vaddps(element, element, At(dy_, slot));
      if (HasBits()) EmitRelu(slot);
    } else {
      vfmadd213ps(element, Line(2, v), Line(3, v));
      times_gradient([&](const Xbyak::Operand& by) { vfmadd231ps(element, Line(1, v), by); });
    }
  }
  options_.streams ? vmovntps(At(to_, slot), element) : vmovups(At(to_, slot), element);
}

// The order of operands is that of the relu of elementwise, which keeps -0 and NaN.
void PassGenerator::EmitRelu(const Slot& slot) {
  const Xbyak::Xmm element = Sum(slot), passes = Vector(4 + slot.index % 2);
  const bool is_limited = std::isfinite(options_.limit);
  if (unit_.has_masks()) {
    vcmpps(k1, element, Zero(), kGreater);
    if (is_limited) vcmpps(k1 | k1, element, Limit(), kLess);
    HasWholeWords() ? kmovw(BitsAt(slot), k1) : kmovb(BitsAt(slot), k1);
  } else {
    vcmpps(passes, element, Zero(), kGreater);
    if (is_limited) {
      const Xbyak::Xmm is_below = Vector(6 + slot.index % 2);
      vcmpps(is_below, element, Limit(), kLess);
      vandps(passes, passes, is_below);
    }
    vmovmskps(spare_.cvt32(), passes);
    mov(BitsAt(slot), spare_.cvt8());
  }
  vmaxps(element, Zero(), element);
  if (is_limited) vminps(element, Limit(), element);
}

void PassGenerator::LoadGradient(const Slot& slot, const Xbyak::Xmm& dy) {
  if (!HasBits()) return vmovups(dy, At(dy_, slot));
  if (unit_.has_masks()) {
    HasWholeWords() ? kmovw(k1, BitsAt(slot)) : kmovb(k1, BitsAt(slot));
    return vmovups(dy | k1 | T_z, At(dy_, slot));
  }
  vpbroadcastb(Mask(), BitsAt(slot));
  vpand(Mask(), Mask(), Channels());
  vpcmpeqd(Mask(), Mask(), Channels());
  vandps(dy, Mask(), At(dy_, slot));
}

void PassGenerator::LoadConstants() {
  if (!HasBits()) return;
  if (pass_ == Pass::kNormalization) {
    unit_.Zero(this, Zero());
    unit_.Broadcast(this, Limit(), options_.limit, spare_);
  } else if (!unit_.has_masks()) {
    vmovups(Channels(), ptr[rip + channels_at_]);
  }
}

// Several pixels at a time, and the last of them one by one.
template <typename Body>
void PassGenerator::ForEachVector(Body body) {
  const int together = kSlots / vectors_;
  if (ReadsSource()) mov(x_, ptr[args_ + offsetof(PassArgs, x)]);
  if (ReadsGradient()) mov(dy_, ptr[args_ + offsetof(PassArgs, dy)]);
  if (WritesMasked()) mov(masked_, ptr[args_ + offsetof(PassArgs, masked)]);
  if (HasBits()) mov(bits_, ptr[args_ + offsetof(PassArgs, bits)]);
  mov(left_, ptr[args_ + offsetof(PassArgs, pixels)]);
  for (int pixels : {together, 1}) {
    Xbyak::Label next, fewer;
    L(next);
    cmp(left_, pixels);
    jl(fewer, T_NEAR);
    for (int i = 0; i < pixels * vectors_; ++i) body(Slot{i, i / vectors_, i % vectors_});
    Advance(pixels);
    jmp(next, T_NEAR);
    L(fewer);
  }
}

void PassGenerator::Advance(int pixels) {
  const int bytes = static_cast<int>(pixels * pixel_bytes_);
  if (ReadsSource()) add(x_, bytes);
  if (ReadsGradient()) add(dy_, bytes);
  if (WritesElements()) add(to_, bytes);
  if (WritesMasked()) add(masked_, bytes);
  if (HasBits()) add(bits_, pixels * static_cast<int>(kBytesOfPixel));
  sub(left_, pixels);
}

void PassGenerator::LoadLine(int line) {
  for (int v = 0; v < vectors_; ++v) {
    vmovups(Line(line, v), ptr[lines_ + static_cast<int>(line * line_bytes_) + v * unit_.bytes()]);
  }
}

void PassGenerator::AddSlots(int first) {
  for (int i = vectors_; i < kSlots; ++i) {
    const Xbyak::Xmm sum = Vector(first + i % vectors_);
    vaddps(sum, sum, Vector(first + i));
  }
}

void PassGenerator::StoreSums(int first, int line) {
  for (int v = 0; v < vectors_; ++v) {
    vmovups(ptr[to_ + static_cast<int>(line * line_bytes_) + v * unit_.bytes()], Vector(first + v));
  }
}

Xbyak::Address PassGenerator::At(const Xbyak::Reg64& base, const Slot& slot) const {
  const int bytes = static_cast<int>(slot.pixel * pixel_bytes_) + slot.vector * unit_.bytes();
  return ptr[base + bytes];
}

Xbyak::Address PassGenerator::BitsAt(const Slot& slot) const {
  return ptr[bits_ + slot.pixel * static_cast<int>(kBytesOfPixel) + slot.vector];
}

VectorUnit UnitOf(cpu::Isa isa, const PixelBlocks& blocks) {
  const VectorUnit widest = VectorUnit::Of(isa);
  return widest.WithBytes(std::min(widest.bytes(), static_cast<int>(blocks.lanes() * 4)));
}

bool Streams(const MemoryDesc& md, cpu::Isa isa, const PixelBlocks& blocks) {
  return md.SizeBytes() > kLarge &&
         KeepAligned({blocks.pixel_stride()}, UnitOf(isa, blocks).bytes());
}

absl::StatusOr<std::unique_ptr<const PassGenerator>> CompilePass(absl::string_view name, Pass pass,
                                                                 cpu::Isa isa,
                                                                 const PixelBlocks& blocks,
                                                                 const PassOptions& options) {
  return jit::Compile<PassGenerator>(name, pass, UnitOf(isa, blocks), blocks, options);
}

}  // namespace tilewire::batch_normalization
