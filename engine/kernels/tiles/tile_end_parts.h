// SPDX-License-Identifier: Apache-2.0
//
// Emits the end of a matrix tile as parts that can be called one by one: each takes its pixels from
// the sums in memory through the epilogue to dst. The parts are reached by an address, that of
// their first entry, so that the code of a tile can call those of any other: a tile's end runs
// between the products of the next (matrix_plan.h), which may be of another shape. What the parts
// read waits in MatrixTiles until then.
//
// Used while generating; thread-compatible.
#ifndef ENGINE_KERNELS_TILES_TILE_END_PARTS_H_
#define ENGINE_KERNELS_TILES_TILE_END_PARTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "engine/kernels/tiles/accumulator_epilogue.h"
#include "engine/kernels/tiles/matrix_plan.h"
#include "xbyak/xbyak.h"

namespace tilewire {

class TileEndParts {
 public:
  // Where a pixel goes.
  enum class Pixels {
    kInRuns,   // as the parts say
    kInPlaces  // as IntegerTileArgs::places says, when the code runs
  };
  struct Sums {
    bool integers = false;  // s32; else f32
    Pixels pixels = Pixels::kInRuns;
  };

  TileEndParts(Xbyak::CodeGenerator* generator, const EpilogueConfig& config, const Sums& sums)
      : g_(generator), config_(config), sums_kind_(sums) {}

  // From `tiles`, the registers that the parts of the end that is due read: rbx, rbp, r12 to r15.
  // Calls of parts keep them for each other, and overwrite rax and the vector registers. Where none
  // is due, CallPart() calls parts that do nothing.
  void Take(const Xbyak::Reg64& tiles);
  void CallPart(int part);
  // Between the last part's call and Leave(): points to a line of the sums, which are not read any
  // more.
  Xbyak::Reg64 sums() const { return sums_; }

  // Leaves this end due in `tiles`; rdi holds IntegerTileArgs.
  void Leave(const Xbyak::Reg64& tiles);

  // Emits the code of the parts, after the last ret; the sums of a part's pixels fit half of the
  // vector registers. `finish` is MatrixTiles::finish: it runs them all.
  void Emit(const std::vector<std::vector<PixelRun>>& parts);
  void EmitTables();

 private:
  static constexpr int kEntryBytes = 8;  // from one part's entry to the next

  struct Ended {
    std::unique_ptr<AccumulatorEpilogue> epilogue;
    Xbyak::Label code;
  };

  void Load(const Xbyak::Reg64& tiles);
  void EmitNone(int parts);
  void EmitFinish(int parts);
  void EmitPart(const std::vector<PixelRun>& runs);
  void EmitPlaced(int pixel);
  void EmitEpilogue(AccumulatorEpilogue* epilogue);
  Ended& OfPixels(int pixels);
  void Advance(const Xbyak::Reg64& pointer, int64_t bytes);
  AccumulatorEpilogue::Registers Registers() const;

  // Between parts of pixels in runs, sums_, dst_ and the compensation of pixels, if there is one in
  // place of the bias, point to the first pixel of the last run.
  const Xbyak::Reg64 parts_{Xbyak::Operand::RBX}, sums_{Xbyak::Operand::R12},
      dst_{Xbyak::Operand::R13}, bias_{Xbyak::Operand::R14}, spare_{Xbyak::Operand::RAX};
  const Xbyak::Reg64 scales_{Xbyak::Operand::R15}, compensation_{Xbyak::Operand::RBP};  // integers
  const Xbyak::Reg64 places_{Xbyak::Operand::R15}, first_dst_{Xbyak::Operand::RBP};     // f32

  Xbyak::CodeGenerator* const g_;
  const EpilogueConfig config_;
  const Sums sums_kind_;
  Xbyak::Label entries_, finish_, none_;
  std::map<int, Ended> ended_;  // what ends so many neighbouring pixels
  int pixel_ = 0;               // where the registers point to when the next part is called
  int64_t dst_bytes_ = 0;
};

}  // namespace tilewire

#endif  // ENGINE_KERNELS_TILES_TILE_END_PARTS_H_
