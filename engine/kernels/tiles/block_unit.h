// SPDX-License-Identifier: Apache-2.0
//
// Registers for the last block of channels of a tile, of which a part is padding. Where half a
// vector holds what is not, sums and weights are half as wide: units of 256 bits take half the time
// for them. Instructions on half a register set its other half to zero, as the padding is.
#ifndef ENGINE_KERNELS_TILES_BLOCK_UNIT_H_
#define ENGINE_KERNELS_TILES_BLOCK_UNIT_H_

#include "engine/jit/vector_unit.h"

namespace tilewire {

// `tail_lanes`: the channels of the block; 0: all of them.
inline VectorUnit UnitOfBlock(const VectorUnit& unit, int tail_lanes) {
  constexpr int kWideBytes = 64;
  const bool narrow =
      unit.bytes() == kWideBytes && tail_lanes > 0 && tail_lanes <= unit.lanes() / 2;
  return narrow ? unit.WithBytes(kWideBytes / 2) : unit;
}

}  // namespace tilewire

#endif  // ENGINE_KERNELS_TILES_BLOCK_UNIT_H_
