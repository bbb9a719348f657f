// SPDX-License-Identifier: Apache-2.0
//
// Emits the end of a matrix tile as parts that can be called one by one: each takes its pixels from
// the sums in memory through the epilogue to dst. The parts are reached by an address, that of
// their first entry, so that the code of a tile can call those of any other: a tile's end runs
// between the products of the next (matrix_plan.h), which may be of another shape.
//
// Used while generating; thread-compatible.
#ifndef ENGINE_KERNELS_ENDED_PARTS_H_
#define ENGINE_KERNELS_ENDED_PARTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "engine/kernels/accumulator_epilogue.h"
#include "engine/kernels/matrix_plan.h"
#include "xbyak/xbyak.h"

namespace tilewire {

class EndedParts {
 public:
  static constexpr int kEntryBytes = 8;  // from one part's entry to the next

  // `epilogue` says where dst is, without `scratch`. The parts move that register, `sums`, and that
  // of a compensation of pixels, which point to the first pixel when the first part is called, and
  // overwrite the vector registers.
  // Vectors of s32 sums are a line of `pixel_bytes` per pixel, `block_bytes` from block to block.
  struct Registers {
    Xbyak::Reg64 sums;
    AccumulatorEpilogue::Registers epilogue;
  };
  EndedParts(Xbyak::CodeGenerator* generator, const EpilogueConfig& config, int block_bytes,
             int pixel_bytes, const Registers& registers)
      : g_(generator),
        config_(config),
        block_bytes_(block_bytes),
        pixel_bytes_(pixel_bytes),
        registers_(registers) {}

  // Emits the entries of the parts, which are to be called in order, and their code. The sums of a
  // part's pixels fit half of the vector registers.
  void Emit(const std::vector<std::vector<PixelRun>>& parts);
  // As many entries of parts that do nothing.
  static void EmitNone(Xbyak::CodeGenerator* generator, Xbyak::Label* entries, int parts);
  void EmitTables();  // after the last ret

  const Xbyak::Label& entries() const { return entries_; }

 private:
  struct Ended {
    std::unique_ptr<AccumulatorEpilogue> epilogue;
    Xbyak::Label code;
  };

  void EmitPart(const std::vector<PixelRun>& runs);
  Ended& OfPixels(int pixels);
  void Advance(const Xbyak::Reg64& pointer, int64_t bytes);

  Xbyak::CodeGenerator* const g_;
  const EpilogueConfig config_;
  const int block_bytes_, pixel_bytes_;
  const Registers registers_;
  Xbyak::Label entries_;
  std::map<int, Ended> ended_;  // what ends so many neighbouring pixels
  int pixel_ = 0;               // where the registers point to when the next part is called
  int64_t dst_ = 0;
};

}  // namespace tilewire

#endif  // ENGINE_KERNELS_ENDED_PARTS_H_
