// SPDX-License-Identifier: Apache-2.0
//
// Generates a copy of squares of 8 x 8 floats whose rows become columns:
//
//   dst[square.dst + column * dst_row + row] = src[square.src + row * src_row + column]
//
// Columns of src and rows of dst are neighbours in memory. Needs AVX2.
//
// Used while generating; thread-compatible. The generated code is thread-safe.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_EXCHANGE_GENERATOR_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_EXCHANGE_GENERATOR_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "engine/jit/generator.h"
#include "engine/jit/loop_count.h"

namespace tilewire::convolution {

struct ExchangeSquare {
  int64_t src, dst;  // in bytes
};

struct ExchangeArgs {
  const float* src;
  float* dst;
  const ExchangeSquare* squares;
  jit::LoopCount count;  // of them
  int64_t ahead;         // bytes from a square of src to one that is fetched for later
};

class ExchangeGenerator final : public jit::Generator {
 public:
  using Function = void (*)(const ExchangeArgs*);
  static constexpr int kSide = 8;

  // Strides in bytes.
  ExchangeGenerator(absl::string_view name, int32_t src_row, int32_t dst_row)
      : Generator(name), src_row_(src_row), dst_row_(dst_row) {}

 private:
  void Emit() override;
  void Prefetch();
  void EmitHalf(int half);

  const int32_t src_row_, dst_row_;
  const Xbyak::Reg64 args_ = rdi, from_ = rsi, to_ = rdx, squares_ = rcx, count_ = r8, ahead_ = r9;
  const Xbyak::Reg64 src_ = r10, dst_ = r11;
};

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_EXCHANGE_GENERATOR_H_
