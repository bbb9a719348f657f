// SPDX-License-Identifier: Apache-2.0
//
// Generates the split of f32 numbers into planes of bf16, as matrix tiles multiply them
// (plane_tile.h). The sum of a number's planes is the number, but for what the last one rounds off:
//
//   1 plane   rounded to 8 bits, halves to even: what tensors of bf16 hold
//   2 planes  rounded to 8 bits, and what is missing rounded to 8 bits: at most 2^-16 of it is lost
//   3 planes  the same, and what is still missing: nothing is lost
//
// Several planes are rounded to nearest, halves away from 0. It makes what is missing as often
// positive as negative, so that the products that are left out (plane_tile.h) do not add up.
//
// A line is a row of a tile: 16 pairs, made of two vectors of 16 numbers. Several planes pair each
// number of the first with that of the second, in turn. A single plane has neighbours as pairs, as
// tensors of bf16 do: of src a line is the first 16 numbers of a step and then the second 16; of
// weights, whose pairs belong to one output, it is numbers of two neighbouring channels in turn. So
// nothing has to be moved across lanes.
//
// Used while generating; thread-compatible. The generated code is thread-safe.
#ifndef ENGINE_KERNELS_PLANES_PLANE_SPLIT_H_
#define ENGINE_KERNELS_PLANES_PLANE_SPLIT_H_

#include <bit>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "engine/base/check.h"
#include "engine/jit/generator.h"
#include "engine/jit/loop_count.h"
#include "engine/memory/plane_layout.h"

namespace tilewire {

// Strides are bytes. Line `row` of step `step` is made of the 16 floats at src + row * row_bytes +
// step * step_bytes and of the 16 that lie pair_bytes after them; lanes whose bit of the masks is
// not set are not read and count as 0. Its plane p goes to
//
//   dst + (step * planes + p) * plane_bytes + row * kPlaneLineBytes
struct PlaneSplitArgs {
  const std::byte* src;
  int64_t row_bytes, pair_bytes, step_bytes;
  jit::LoopCount rows, steps;
  uint64_t first_mask, second_mask;
  std::byte* dst;
  int64_t plane_bytes = kPlaneStepBytes;
  // Set to 1 if a number is one that planes do not hold, see IsBeyondPlanes(); else left alone.
  mutable uint64_t beyond = 0;
};
using PlaneSplitFunction = void (*)(const PlaneSplitArgs*);

// Whether the planes of a number are not numbers: infinities and NaN, and what is rounded to an
// infinity.
inline bool IsBeyondPlanes(float number) {
  const uint32_t magnitude = std::bit_cast<uint32_t>(number) & 0x7FFFFFFF;
  return magnitude >= 0x7F7F8000u;
}

class PlaneSplit final : public jit::Generator {
 public:
  // How the two vectors of a line lie: in turn, or, of one plane, one after the other. The latter
  // needs AVX-512 BF16.
  enum class Lines { kInTurn, kOneAfterTheOther };

  static constexpr int kMostPlanes = 3;
  // `planes`: 1 to kMostPlanes.
  PlaneSplit(absl::string_view name, int planes, Lines lines = Lines::kInTurn)
      : Generator(name), planes_(planes), lines_(lines) {
    TILEWIRE_CHECK(planes >= 1 && planes <= kMostPlanes, "one to three planes");
  }

  // The order of the lines of src.
  static Lines SourceLines(int planes) {
    return planes == 1 ? Lines::kOneAfterTheOther : Lines::kInTurn;
  }

 private:
  void Emit() override;
  void LoadConstants();
  void EmitLine();
  void EmitPlane(int plane);
  void EmitNarrowLine();
  void EmitEvenPlane();
  void MarkBeyond();
  void RoundToEven(const Xbyak::Zmm& number, const Xbyak::Zmm& spare);
  void NoteBeyond();

  const int planes_;
  const Lines lines_;

  const Xbyak::Reg64 args_ = rdi, src_ = rsi, dst_ = rdx, row_bytes_ = rcx, pair_bytes_ = r8;
  const Xbyak::Reg64 rows_left_ = r9, steps_left_ = r10, src_step_ = r11, dst_step_ = rax;
  const Xbyak::Reg64 plane_bytes_ = rbx;
  const Xbyak::Opmask first_mask_ = k1, second_mask_ = k2, beyond_mask_ = k3, line_mask_ = k4;
  // The numbers, less the planes that have been taken from them; what is stored of them.
  const Xbyak::Zmm first_ = zmm0, second_ = zmm1, first_plane_ = zmm2, second_plane_ = zmm3;
  const Xbyak::Zmm line_ = zmm4, upper_bits_ = zmm5, half_ = zmm6, zero_ = zmm7, one_ = zmm10;
  const Xbyak::Zmm beyond_[2] = {zmm8, zmm9};  // NaN in a lane that met a number beyond planes
};

}  // namespace tilewire

#endif  // ENGINE_KERNELS_PLANES_PLANE_SPLIT_H_
