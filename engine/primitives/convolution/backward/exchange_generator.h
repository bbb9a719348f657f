// SPDX-License-Identifier: Apache-2.0
//
// Generates a copy of squares of floats, of as many rows as a vector has lanes, whose rows become
// columns:
//
//   dst[square.dst + column * dst_row + row] = src[square.src + row * src_row + column]
//
// Columns of src and rows of dst are neighbours in memory. Squares of src are fetched some squares
// ahead, so that their table is longer than the count of those that are copied.
//
// Used while generating; thread-compatible. The generated code is thread-safe.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_EXCHANGE_GENERATOR_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_EXCHANGE_GENERATOR_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "engine/jit/generator.h"
#include "engine/jit/loop_count.h"
#include "engine/jit/vector_unit.h"

namespace tilewire::convolution {

struct ExchangeSquare {
  int64_t src, dst;  // in bytes
};

struct ExchangeArgs {
  const float* src;
  float* dst;
  const ExchangeSquare* squares;  // `count`, and kAhead more
  jit::LoopCount count;
};

class ExchangeGenerator final : public jit::Generator {
 public:
  using Function = void (*)(const ExchangeArgs*);
  static constexpr int kAhead = 24;  // about what memory takes to answer

  // Vectors of 32 or 64 bytes; strides in bytes.
  ExchangeGenerator(absl::string_view name, const VectorUnit& unit, int32_t src_row,
                    int32_t dst_row)
      : Generator(name), unit_(unit), src_row_(src_row), dst_row_(dst_row) {}

  int64_t side() const { return unit_.lanes(); }

 private:
  void Emit() override;
  void Prefetch();
  void EmitColumns(int first);
  void InsertRows(const Xbyak::Xmm& to, int row, int column);

  const VectorUnit unit_;
  const int32_t src_row_, dst_row_;
  const Xbyak::Reg64 args_ = rdi, from_ = rsi, to_ = rdx, squares_ = rcx, count_ = r8;
  const Xbyak::Reg64 src_ = r9, dst_ = r10, ahead_ = r11;
};

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_EXCHANGE_GENERATOR_H_
