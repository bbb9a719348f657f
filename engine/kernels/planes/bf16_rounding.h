// SPDX-License-Identifier: Apache-2.0
//
// Generates the rounding of f32 numbers to bf16, to nearest, halves to even, as vdpbf16ps reads
// them: neighbours are a pair of 4 bytes, which takes the place of one f32 number. A line is 32
// numbers in 64 bytes.
//
// Numbers from 3.396e38 on round to infinity, denormals count as 0, NaN stays NaN.
//
// Used while generating; thread-compatible. The generated code is thread-safe.
#ifndef ENGINE_KERNELS_PLANES_BF16_ROUNDING_H_
#define ENGINE_KERNELS_PLANES_BF16_ROUNDING_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "engine/jit/generator.h"

namespace tilewire {

inline constexpr int64_t kPairNumbers = 2;       // of a pair
inline constexpr int64_t kBf16LineNumbers = 32;  // of a line
inline constexpr int64_t kBf16LineBytes = 64;

// Line i is made of the 16 floats at src + i * src_step and of the 16 at second + i * src_step, and
// goes to dst + i * kBf16LineBytes. Lanes whose bit of the masks is not set are not read and count
// as 0. Steps are bytes.
struct Bf16RoundingArgs {
  const std::byte *src, *second;
  std::byte* dst;
  int64_t src_step;
  int64_t lines;
  uint64_t first_mask, second_mask;
};
using Bf16RoundingFunction = void (*)(const Bf16RoundingArgs*);

// Needs AVX-512 BF16.
class Bf16Rounding final : public jit::Generator {
 public:
  explicit Bf16Rounding(absl::string_view name) : Generator(name) {}

  // The mask of the first `count` of the 16 lanes from `first` on.
  static uint64_t MaskOf(int64_t count, int64_t first);

  // Rounds numbers that follow each other to lines that do. The last one ends in zeros.
  void Round(const float* from, int64_t count, std::byte* to) const;

 private:
  void Emit() override;
  void EmitLine(int line);

  const Xbyak::Reg64 args_ = rdi, src_ = rsi, second_ = rdx, dst_ = rcx, step_ = r8, left_ = r9;
  const Xbyak::Opmask first_mask_ = k1, second_mask_ = k2;
};

}  // namespace tilewire

#endif  // ENGINE_KERNELS_PLANES_BF16_ROUNDING_H_
