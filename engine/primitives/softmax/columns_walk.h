// SPDX-License-Identifier: Apache-2.0
//
// Generates softmax of f32 for rows that lie side by side, whole vectors of them at once. Memory
// is walked three times in the order in which it lies, turn after turn of the same vectors: for
// maxima, for exponentials and their sums, and to scale them. The maxima and sums of the vectors
// of a turn stay in the first cache. How they become those of rows depends on what the lanes hold:
//
//   kRows    a lane of a vector is a row: the vectors of a turn are an element each of neighbouring
//            rows, as in columns of nchw
//   kCopies  as many elements of all rows as make whole vectors, so that no lane is idle where
//            rows are few: a turn of 49 vectors has 16 elements each of 49 rows. Each element of
//            a row is combined with its copies in the turn.
//   kLanes   a vector is 16 elements of one row, as in nChw16c: its lanes are combined.
//
// No row depends on the others. Used while generating; thread-compatible. The generated code is
// thread-safe.
#ifndef ENGINE_PRIMITIVES_SOFTMAX_COLUMNS_WALK_H_
#define ENGINE_PRIMITIVES_SOFTMAX_COLUMNS_WALK_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "engine/jit/generator.h"
#include "engine/jit/tail_mask.h"
#include "engine/jit/vector_math.h"

namespace tilewire::softmax {

enum class ColumnsForm { kRows, kCopies, kLanes };

struct ColumnsConfig {
  static constexpr int64_t kMostVectors = 64;

  ColumnsForm form = ColumnsForm::kRows;
  VectorUnit unit;
  int64_t rows = 0;        // kRows and kLanes: at most kMostVectors vectors of them; kCopies: all
  int64_t size = 0;        // elements of a row
  int64_t turn_bytes = 0;  // from turn to turn

  // The work of one turn.
  int64_t Vectors() const;
  int64_t Copies() const;  // elements of a row
  // Turns of whole vectors; elements after them: of each row, or with kCopies of all.
  int64_t WholeTurns() const;
  int64_t Rest() const;
};

class ColumnsWalk final : public jit::Generator {
 public:
  // `maxima` and `sums` have a vector for each of a turn and are overwritten; src may be dst.
  using Function = void (*)(const float* src, float* dst, float* maxima, float* sums);

  ColumnsWalk(absl::string_view name, const ColumnsConfig& config);

 private:
  static constexpr int kUnroll = 4;
  static constexpr int64_t kVectorsAhead = 64;
  static constexpr int kScratch0 = 8, kScratch1 = 9, kFill = 10;

  using Vector = jit::VectorMath::Vector;
  using Step = absl::FunctionRef<void(int i, bool masked)>;  // for the vector at at_ + i vectors

  Vector Value(int i) const { return config_.unit.Vector(i); }
  Vector Fill() const { return config_.unit.Vector(kFill); }
  int Bytes() const { return config_.unit.bytes(); }
  Xbyak::Address At(const Xbyak::Reg64& base, int i) { return ptr[base + at_ + i * Bytes()]; }

  Xbyak::Address Ahead(const Xbyak::Reg64& base, int i);

  void Emit() override;
  void Walk(Step step);
  void Turn(int64_t vectors, bool masked, bool last_masked, Step step);
  void SetAll(const Xbyak::Reg64& buffer, const Vector& value);
  void EmitMaxima();
  void EmitExponentials();
  void EmitScaling();
  // Combines what the turn's vectors in `buffer` have of each row, to all of its lanes.
  void Combine(const Xbyak::Reg64& buffer,
               absl::FunctionRef<void(const Vector&, const Xbyak::Operand&)> combine);
  void CombineCopies(const Xbyak::Reg64& buffer,
                     absl::FunctionRef<void(const Vector&, const Xbyak::Operand&)> combine);

  // Arguments arrive as System V rdi, rsi, rdx, rcx.
  const Xbyak::Reg64 src_ = rdi, dst_ = rsi, maxima_ = rdx, sums_ = rcx;
  const Xbyak::Reg64 from_ = r8, to_ = r9;  // the turn
  const Xbyak::Reg64 at_ = r10;             // bytes into it
  const Xbyak::Reg64 left_ = r11;           // turns

  const ColumnsConfig config_;
  const int tail_lanes_;  // of vectors that are not whole; 0: there are none
  jit::VectorMath math_;
  jit::TailMask tail_;
  jit::TailMask copy_tail_;  // of the rows, where they are combined in copies
};

}  // namespace tilewire::softmax

#endif  // ENGINE_PRIMITIVES_SOFTMAX_COLUMNS_WALK_H_
