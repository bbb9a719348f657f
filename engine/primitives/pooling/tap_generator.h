// SPDX-License-Identifier: Apache-2.0
//
// Generates the code that combines a row of src with a row of windows:
//
//   windows[o] = combine(windows[o], row[o * stride + k])      for every k in [0, kernel), in order
//
// where combine is the maximum or the sum, of f32 or of s32. Whole vectors of windows.
#ifndef ENGINE_PRIMITIVES_POOLING_TAP_GENERATOR_H_
#define ENGINE_PRIMITIVES_POOLING_TAP_GENERATOR_H_

#include "absl/strings/string_view.h"
#include "engine/jit/generator.h"
#include "engine/jit/vector_unit.h"

namespace tilewire::pooling {

struct TapArgs {
  const uint32_t* row;  // padded
  uint32_t* windows;
  int64_t vectors;  // >= 1
};

struct TapShape {
  VectorUnit unit;
  bool is_max, is_float;
  int64_t kernel, stride;
};

class TapGenerator final : public jit::Generator {
 public:
  TapGenerator(const TapShape& shape, absl::string_view name) : Generator(name), shape_(shape) {}

 private:
  void Emit() override;
  void EmitLoad(int64_t tap);
  void EmitCombine();
  Xbyak::Xmm Vector(int index) const { return shape_.unit.Vector(index); }

  // Arguments arrive in rdi.
  const Xbyak::Reg64 row_ = rsi, windows_ = rdx, left_ = rcx;
  const Xbyak::Opmask gathered_ = k1, ordered_ = k2;
  const TapShape shape_;
  Xbyak::Label steps_;  // a vector of 0, stride, 2 * stride, ...
};

}  // namespace tilewire::pooling

#endif  // ENGINE_PRIMITIVES_POOLING_TAP_GENERATOR_H_
