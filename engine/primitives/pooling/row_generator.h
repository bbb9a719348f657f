// SPDX-License-Identifier: Apache-2.0
//
// Generates the pooling of one row of one group of channels, or of several groups at once: all dst
// elements along W, with one row (depth and height) of windows. A vector holds the group's channels
// of one pixel, as they are for the maximum of bytes and of bf16, as 32-bit numbers otherwise. The
// outputs of a step stay in registers. Short rows take several groups, because with one chain of
// additions the core would wait for each result. A maximum of f32 may save the number of the tap
// that it took, the first of equals or of NaN, as a byte for each lane.
#ifndef ENGINE_PRIMITIVES_POOLING_ROW_GENERATOR_H_
#define ENGINE_PRIMITIVES_POOLING_ROW_GENERATOR_H_

#include "absl/strings/string_view.h"
#include "engine/jit/generator.h"
#include "engine/jit/loop_count.h"
#include "engine/jit/vector_unit.h"
#include "engine/kernels/elements/vector_conversion.h"
#include "engine/primitives/pooling/pooling.h"

namespace tilewire::pooling {

struct RowArgs {
  const std::byte* src;  // the windows' first valid row (depth, height), at width 0, first group
  std::byte* dst;        // at width 0, first group
  jit::LoopCount depths, heights;                   // valid taps
  int64_t depth_stride_bytes, height_stride_bytes;  // of src
  float rows;                                       // depths * heights
  uint8_t* places;                                  // of dst's elements, where they are saved
  int64_t tap;                                      // of the windows' first valid row, at column 0
};

struct RowShape {
  VectorUnit unit;
  PoolingAlgorithm algorithm;
  DataType type;
  int lanes;  // 8, or the unit's; for a maximum up to as many as fill a vector
  // Only the first of them are touched; 0: all. For units with masks.
  int tail_lanes;
  int64_t src_pixel_bytes, dst_pixel_bytes;
  int64_t in, out, kernel, stride, padding;  // along W
  int64_t window;                            // taps of a whole window, all dimensions
  int groups;                                // 1 unless out <= kShortRow
  int64_t src_group_bytes, dst_group_bytes;  // from one to the next
  int64_t height;                            // taps of a window in that dimension
  bool saves_places;                         // of a maximum of f32, whose groups are 1

  static constexpr int64_t kShortRow = 4;
  static constexpr int kChains = 8;  // that keep two adders of four cycles' latency busy
};

// Taps are combined in the order of depth, height, width.
class RowGenerator final : public jit::Generator {
 public:
  RowGenerator(const RowShape& shape, absl::string_view name);

 private:
  void Emit() override;
  void LoadTailMask();
  void EmitMiddle(int64_t begin, int64_t end);
  // `count` outputs of every group, `stride` pixels apart, of `taps.count` pixels each, the first
  // of which is the window's tap `taps.first`; displacements in pixels from the registers.
  struct Taps {
    int64_t first, count;
  };
  void EmitOutputs(const Xbyak::Reg64& src, int64_t src_pixel, const Xbyak::Reg64& dst,
                   int64_t dst_pixel, int count, const Taps& taps);
  void EmitTap(int output, const Xbyak::RegExp& value);
  void EmitFloatMaximum(const Xbyak::Xmm& result, const Xbyak::RegExp& value);
  // Where places are saved: those of windows' first taps, of which `first_tap` is the column.
  void BeginPlaces(int vectors, int64_t first_tap);
  void BroadcastTap();
  void EmitPlacedMaximum(int output, const Xbyak::RegExp& value);
  void EmitStorePlace(int output, const Xbyak::RegExp& to);
  void LoadOrderConstants();
  void EmitBf16Maximum(const Xbyak::Xmm& result, const Xbyak::RegExp& value);
  void EmitNegativeReversal(const Xbyak::Xmm& words);
  void EmitIntegerMaximum(const Xbyak::Xmm& result, const Xbyak::RegExp& value);
  void LoadTap(const Xbyak::Xmm& to, const Xbyak::RegExp& from);
  void EmitDivision(int vectors, int64_t taps);
  void EmitStore(int output, const Xbyak::RegExp& to);
  void BroadcastIdentity(const Xbyak::Xmm& vector);  // what any first tap replaces

  bool is_max() const { return shape_.algorithm == PoolingAlgorithm::kMax; }
  bool is_float() const { return shape_.type == DataType::kF32; }
  bool is_bf16() const { return shape_.type == DataType::kBf16; }
  bool is_byte() const { return SizeOf(shape_.type) == 1; }
  bool has_tail() const { return shape_.tail_lanes != 0; }
  int vector_bytes() const {
    return shape_.lanes * (is_max() ? static_cast<int>(SizeOf(shape_.type)) : 4);
  }
  // Registers over 15 take EVEX, whose longer code vectors of 8 lanes do not need.
  bool is_wide() const { return shape_.unit.registers() > 16 && shape_.lanes > 8; }
  int registers() const { return is_wide() ? shape_.unit.registers() : 16; }
  int step() const {  // outputs in registers at once
    if (shape_.saves_places) return is_wide() ? 12 : 5;
    return is_wide() ? 16 : 10;
  }
  // The unit that loads and stores averages: without masks where they are not needed.
  VectorUnit ConversionUnit() const {
    return is_wide() ? shape_.unit : VectorUnit(32, 16, /*features=*/0);
  }
  Xbyak::Xmm Vector(int index) const { return unit_.Vector(index); }
  Xbyak::Xmm Scratch(int i) const { return Vector(registers() - 3 + i); }
  // Where places are saved: that of an output, the number of the tap, and 1 in all lanes.
  Xbyak::Xmm Place(int output) const { return Vector(step() + output); }
  int64_t place_pixel_bytes() const { return shape_.dst_pixel_bytes / 4; }
  Xbyak::Xmm Tap() const { return Vector(registers() - 4); }
  Xbyak::Xmm One() const { return Vector(registers() - 5); }
  // For the maximum of bf16, which converts no averages.
  Xbyak::Xmm Magnitude() const { return Vector(registers() - 4); }
  Xbyak::Xmm LowestWord() const { return Vector(registers() - 5); }

  // Arguments arrive in rdi.
  const Xbyak::Reg64 src_ = rsi, dst_ = rdx;
  const Xbyak::Reg64 src_step_ = r12, dst_step_ = r13, steps_ = rbx;  // of the middle's loop
  const Xbyak::Reg64 depth_src_ = r10, height_src_ = r11;
  const Xbyak::Reg64 depths_ = rcx, heights_ = rax;  // left
  const Xbyak::Reg64 places_step_ = r8, places_ = r9, tap_ = r14, depth_tap_ = r15;
  const Xbyak::Opmask ordered_ = k1, tail_ = k2, spare_mask_ = k3;

  const RowShape shape_;
  const VectorUnit unit_;        // of the vectors of this row
  VectorConversion conversion_;  // of averages
};

}  // namespace tilewire::pooling

#endif  // ENGINE_PRIMITIVES_POOLING_ROW_GENERATOR_H_
