// SPDX-License-Identifier: Apache-2.0
//
// Neighbours across the channels of tensors in blocks as long as a vector. A vector holds the
// block's channels of a pixel; its neighbours are in the blocks before and after, and the values of
// all three are shifted over each other:
//
//   sum[c] = sum of the values of the channels c - reach to c + reach, 0 <= reach <= lanes
//
// or the sum of their squares.
//
// Used while generating; thread-compatible.
#ifndef ENGINE_PRIMITIVES_LRN_BLOCK_NEIGHBOURS_H_
#define ENGINE_PRIMITIVES_LRN_BLOCK_NEIGHBOURS_H_

#include <initializer_list>

#include "absl/status/status.h"
#include "engine/jit/vector_unit.h"
#include "engine/primitives/lrn/lrn.h"
#include "xbyak/xbyak.h"

namespace tilewire::lrn {

// Stand for the block before the first and after the last, at every pixel.
alignas(64) inline constexpr float kZeroBlock[16] = {};

class NeighbourSums {
 public:
  // Takes the vector registers from `first` on, kVectors of them: middle() and sum() are the first
  // two, and the spare ones after them are free once there is a sum.
  static constexpr int kVectors = 7, kSpare = 5;
  NeighbourSums(Xbyak::CodeGenerator* generator, const VectorUnit& unit, int reach, int first);

  // The values: of the block before, of this one, of the one after. They are left as they are.
  const Xbyak::Xmm& low() const { return low_; }
  const Xbyak::Xmm& middle() const { return middle_; }
  const Xbyak::Xmm& high() const { return high_; }
  const Xbyak::Xmm& sum() const { return sum_; }
  void Emit() { EmitSum(/*squares=*/false); }
  void EmitOfSquares() { EmitSum(/*squares=*/true); }

 private:
  void EmitSum(bool squares);
  void Add(const Xbyak::Xmm& values);
  // valignd shifts whole vectors by lanes; without it halves have to be shifted on their own.
  bool ShiftsVectors() const { return unit_.has_masks(); }
  void EmitNeighbours(int shift);
  void AddShifted(int shift, const Xbyak::Xmm& left, const Xbyak::Xmm& between,
                  const Xbyak::Xmm& right);

  Xbyak::CodeGenerator* const g_;
  const VectorUnit unit_;
  const int reach_;
  bool squares_ = false;  // what is being summed up
  const Xbyak::Xmm middle_, sum_, low_, high_, shifted_, low_middle_, middle_high_;
};

//   kUnimplemented  not across channels; neighbours beyond the next block; a tensor that is not in
//                   blocks of a vector's length whose pixels follow each other
absl::Status RequireBlocked(const LrnDesc& desc, std::initializer_list<const MemoryDesc*> tensors,
                            const VectorUnit& unit);

}  // namespace tilewire::lrn

#endif  // ENGINE_PRIMITIVES_LRN_BLOCK_NEIGHBOURS_H_
