// SPDX-License-Identifier: Apache-2.0
//
// Generated softmax of rows of f32: dst = e^(src - max) / sum e^(src - max) over each row. Three
// walks over a row, each vector by vector with several sums at once: the maximum, the exponentials
// and their sum, the scaling. How a row is cut depends only on its length.
//
// Used while generating; thread-compatible. The generated code is thread-safe.
#ifndef ENGINE_KERNELS_PRODUCTS_SOFTMAX_ROWS_H_
#define ENGINE_KERNELS_PRODUCTS_SOFTMAX_ROWS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "engine/jit/generator.h"
#include "engine/jit/loop_count.h"
#include "engine/jit/tail_mask.h"
#include "engine/jit/vector_math.h"

namespace tilewire {

using jit::VectorUnit;

class SoftmaxRows final : public jit::Generator {
 public:
  // src may be dst.
  using Function = void (*)(const float* src, float* dst, jit::LoopCount rows);

  // Rows of `size` elements; `stride` elements from row to row, in src and dst. Both at most
  // kLongestRow, which a displacement reaches.
  static constexpr int64_t kLongestRow = (int64_t{1} << 28) - 1;
  SoftmaxRows(absl::string_view name, const VectorUnit& unit, int64_t size, int64_t stride);

 private:
  static constexpr int kUnroll = 4;  // vectors at once, each with its own accumulator
  // Vector registers: 0 to 3 hold values, 4 to 7 accumulators, then come these. 15 may hold the
  // mask of the tail.
  static constexpr int kScratch0 = 8, kScratch1 = 9, kOfRow = 10, kFill = 11;

  using Vector = jit::VectorMath::Vector;
  Vector Value(int i) const { return unit_.Vector(i); }
  Vector Accumulator(int i) const { return unit_.Vector(kUnroll + i); }
  Vector OfRow() const { return unit_.Vector(kOfRow); }  // the maximum, later the scale
  int VectorBytes() const { return unit_.bytes(); }
  bool HasTail() const { return size_ % lanes_ != 0; }

  void Emit() override;
  void Walk(absl::FunctionRef<void(int, bool)> step);
  void Load(int i, const Xbyak::Reg64& row, bool whole);
  void Store(int i, bool whole);
  void EmitMaximum();
  void EmitExponentials();
  void EmitScaling();
  void Reduce(absl::FunctionRef<void(const Vector&, const Vector&)> combine);

  // Arguments arrive as System V rdi, rsi, rdx.
  const Xbyak::Reg64 src_ = rdi, dst_ = rsi, rows_ = rdx;
  const Xbyak::Reg64 at_ = rcx;   // bytes into the row
  const Xbyak::Reg64 left_ = r8;  // steps of kUnroll vectors

  const VectorUnit unit_;
  const int lanes_;
  const int64_t size_, stride_;
  jit::VectorMath math_;
  jit::TailMask tail_;
};

}  // namespace tilewire

#endif  // ENGINE_KERNELS_PRODUCTS_SOFTMAX_ROWS_H_
