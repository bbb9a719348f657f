// SPDX-License-Identifier: Apache-2.0
//
// Emits the end of a tile whose f32 sums do not stand in vector registers but were stored to
// memory, as those of matrix tiles are: as many pixels at a time as registers hold go through the
// epilogue.
//
// Used while generating; thread-compatible.
#ifndef ENGINE_KERNELS_SPILLED_SUMS_H_
#define ENGINE_KERNELS_SPILLED_SUMS_H_

#include <cstdint>
#include <map>
#include <memory>

#include "engine/kernels/accumulator_epilogue.h"
#include "xbyak/xbyak.h"

namespace tilewire {

class SpilledSums {
 public:
  struct Registers {
    Xbyak::Reg64 sums, chunks_left;           // overwritten
    AccumulatorEpilogue::Registers epilogue;  // without `scratch`
  };

  // Vectors of sums are a line of `pixel_bytes` per pixel, `block_bytes` from block to block.
  SpilledSums(Xbyak::CodeGenerator* generator, const EpilogueConfig& config, int64_t block_bytes,
              int64_t pixel_bytes, const Registers& registers)
      : g_(generator),
        config_(config),
        block_bytes_(block_bytes),
        pixel_bytes_(pixel_bytes),
        registers_(registers) {}

  // Of `pixels` neighbours: the registers `sums` and `dst` hold where the first of them lies.
  // Returns the bytes by which `dst` has moved.
  int64_t Finish(int pixels);
  void EmitTables();  // after the last ret

 private:
  void FinishChunk(int pixels);
  void Advance(const Xbyak::Reg64& pointer, int64_t bytes);

  Xbyak::CodeGenerator* const g_;
  const EpilogueConfig config_;
  const int64_t block_bytes_, pixel_bytes_;
  const Registers registers_;
  std::map<int, std::unique_ptr<AccumulatorEpilogue>> epilogues_;  // by their pixels
};

}  // namespace tilewire

#endif  // ENGINE_KERNELS_SPILLED_SUMS_H_
