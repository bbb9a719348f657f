// SPDX-License-Identifier: Apache-2.0
//
// Generates the pooling of one row of one channel block: all dst elements along W, with one row
// (depth and height) of windows. A vector holds the block's channels of one pixel; the outputs of a
// step stay in registers.
#ifndef ENGINE_PRIMITIVES_POOLING_ROW_GENERATOR_H_
#define ENGINE_PRIMITIVES_POOLING_ROW_GENERATOR_H_

#include "absl/strings/string_view.h"
#include "engine/cpu/isa.h"
#include "engine/jit/generator.h"
#include "engine/primitives/pooling/pooling.h"

namespace tilewire::pooling {

struct RowArgs {
  const float* src;         // the windows' first valid row (depth, height), at width 0
  float* dst;               // at width 0
  int64_t depths, heights;  // valid taps, >= 1
  int64_t depth_stride_bytes, height_stride_bytes;  // of src
  float rows;                                       // depths * heights
};

struct RowShape {
  cpu::Isa isa;
  PoolingAlgorithm algorithm;
  int64_t in, out, kernel, stride, padding;  // along W
  int64_t window;                            // taps of a whole window, all dimensions
};

// Taps are combined in the order of depth, height, width.
class RowGenerator final : public jit::Generator {
 public:
  RowGenerator(const RowShape& shape, absl::string_view name) : Generator(name), shape_(shape) {}

 private:
  void Emit() override;
  void EmitMiddle(int64_t begin, int64_t end);
  // `count` outputs, `stride` pixels apart, of `taps` pixels each; displacements in pixels from the
  // registers.
  void EmitOutputs(const Xbyak::Reg64& src, int64_t src_pixel, const Xbyak::Reg64& dst,
                   int64_t dst_pixel, int count, int64_t taps);
  void EmitTap(int output, int64_t displacement);
  void EmitDivision(int count, int64_t taps);
  void Broadcast(const Xbyak::Xmm& vector, float value);  // overwrites eax

  bool is_avx512() const { return shape_.isa >= cpu::Isa::kAvx512; }
  int64_t pixel_bytes() const { return is_avx512() ? 64 : 32; }
  int step() const { return is_avx512() ? 16 : 10; }  // outputs in registers at once
  Xbyak::Xmm Vector(int index) const;
  Xbyak::Xmm Scratch(int i) const { return Vector((is_avx512() ? 29 : 13) + i); }

  // Arguments arrive in rdi.
  const Xbyak::Reg64 src_ = rsi, dst_ = rdx;
  const Xbyak::Reg64 src_step_ = r12, dst_step_ = r13, steps_ = rbx;  // of the middle's loop
  const Xbyak::Reg64 depth_src_ = r10, height_src_ = r11;
  const Xbyak::Reg64 depths_ = rcx, heights_ = rax;  // left
  const Xbyak::Opmask ordered_ = k1;

  const RowShape shape_;
};

}  // namespace tilewire::pooling

#endif  // ENGINE_PRIMITIVES_POOLING_ROW_GENERATOR_H_
