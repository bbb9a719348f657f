// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/deconvolution/tile_loop.h"

#include <cstddef>

namespace tilewire::deconvolution {

void TileLoop::Emit() {
  Xbyak::Label next_tile;
  Preamble();
  mov(tiles_left_, ptr[args_ + offsetof(TileArgs, tile_count)]);
  mov(dst_, ptr[args_ + offsetof(TileArgs, dst)]);
  mov(bias_, ptr[args_ + offsetof(TileArgs, bias)]);
  xor_(tile_src_, tile_src_);
  L(next_tile);
  EmitTile();
  add(tile_src_, static_cast<int>(loop_.src_tile_bytes));
  add(dst_, static_cast<int>(loop_.dst_tile_bytes));
  dec(tiles_left_);
  jnz(next_tile, T_NEAR);
  Postamble();
  EmitTables();
}

void TileLoop::EmitTaps(int64_t first_pixel) {
  Xbyak::Label next_tap, next_block, done;
  mov(tap_, ptr[args_ + offsetof(TileArgs, taps)]);
  mov(taps_left_, ptr[args_ + offsetof(TileArgs, tap_count)]);
  test(taps_left_, taps_left_);
  jz(done, T_NEAR);
  L(next_tap);
  mov(src_, ptr[tap_ + offsetof(TapArgs, src)]);
  mov(weights_, ptr[tap_ + offsetof(TapArgs, weights)]);
  lea(src_, ptr[src_ + tile_src_ + static_cast<int>(first_pixel * tile_.unit.bytes())]);
  if (loop_.ic_blocks > 0) {
    mov(blocks_left_, loop_.ic_blocks);
    L(next_block);
    EmitBlock(tile_.unit.lanes());
    add(src_, static_cast<int>(loop_.src_block_bytes));
    add(weights_, static_cast<int>(loop_.weights_block_bytes));
    dec(blocks_left_);
    jnz(next_block, T_NEAR);
  }
  if (loop_.tail_channels > 0) EmitBlock(loop_.tail_channels);
  add(tap_, sizeof(TapArgs));
  dec(taps_left_);
  jnz(next_tap, T_NEAR);
  L(done);
}

}  // namespace tilewire::deconvolution
