// SPDX-License-Identifier: Apache-2.0
//
// The base of generators of one tile of a matrix product: sums of f32 products in vector registers,
// block after block as the epilogue wants them, which begin as zeros and end in the epilogue.
//
// Used while generating; thread-compatible.
#ifndef ENGINE_KERNELS_TILES_ACCUMULATOR_TILE_H_
#define ENGINE_KERNELS_TILES_ACCUMULATOR_TILE_H_

#include "absl/strings/string_view.h"
#include "engine/jit/generator.h"
#include "engine/kernels/tiles/accumulator_epilogue.h"
#include "xbyak/xbyak.h"

namespace tilewire {

class AccumulatorTile : public jit::Generator {
 protected:
  AccumulatorTile(absl::string_view name, const EpilogueConfig& config)
      : Generator(name),
        tile_(config),
        epilogue_(this, config,
                  {.dst = dst_, .bias = bias_, .spare = spare_, .scratch = config.FreeVectors()}) {}

  Xbyak::Xmm Vector(int index) const { return tile_.unit.Vector(index); }
  int Tile() const { return tile_.blocks * tile_.pixels; }  // registers that hold the sums

  // `chains` sets of sums, one after the other.
  void ZeroSums(int chains = 1) {
    for (int i = 0; i < chains * Tile(); ++i) vxorps(Vector(i), Vector(i), Vector(i));
  }
  // Sums to dst; `zero_tail`: the lanes after the last channel are padding.
  void FinishSums(bool zero_tail) {
    epilogue_.AddBias();
    epilogue_.ApplyPostOps(/*skip_sum=*/false);
    if (zero_tail) epilogue_.ZeroTail();
    epilogue_.Store();
  }

  // dst_ and bias_ hold the tile's addresses before FinishSums().
  const Xbyak::Reg64 args_ = rdi, dst_ = rsi, bias_ = rdx, spare_ = rax;
  const EpilogueConfig tile_;
  AccumulatorEpilogue epilogue_;
};

}  // namespace tilewire

#endif  // ENGINE_KERNELS_TILES_ACCUMULATOR_TILE_H_
