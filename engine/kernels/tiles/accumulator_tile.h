// SPDX-License-Identifier: Apache-2.0
//
// The base of generators of one tile of a matrix product: sums of f32 products in vector registers,
// block after block as the epilogue wants them, which begin as zeros and end in the epilogue.
//
// Used while generating; thread-compatible.
#ifndef ENGINE_KERNELS_TILES_ACCUMULATOR_TILE_H_
#define ENGINE_KERNELS_TILES_ACCUMULATOR_TILE_H_

#include <cstddef>

#include "absl/strings/string_view.h"
#include "engine/jit/generator.h"
#include "engine/kernels/tiles/accumulator_epilogue.h"
#include "xbyak/xbyak.h"

namespace tilewire {

// sums += weights * src; with `pairs`, lanes are pairs of numbers of bf16, and both products of one
// are added.
inline void EmitMultiplyAdd(Xbyak::CodeGenerator* g, bool pairs, const Xbyak::Xmm& sums,
                            const Xbyak::Xmm& weights, const Xbyak::Operand& src) {
  pairs ? g->vdpbf16ps(sums, weights, src) : g->vfmadd231ps(sums, weights, src);
}

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
  // Register `index`, as wide as the products of the block need.
  virtual Xbyak::Xmm OfBlock(int /*block*/, int index) const { return Vector(index); }
  Xbyak::Xmm Sum(int chain, int block, int pixel) const {
    return OfBlock(block, chain * Tile() + block * tile_.pixels + pixel);
  }
  // One step of a reduction, whose vectors of weights, one per block, are in the registers from
  // `weights` on: the sums of each pixel += weights * the number at `src(pixel)`, which `broadcast`
  // takes.
  template <typename Address>
  void AddProducts(int chain, bool pairs, int weights, int broadcast, const Address& src) {
    for (int pixel = 0; pixel < tile_.pixels; ++pixel) {
      vbroadcastss(Vector(broadcast), ptr[src(pixel)]);
      for (int b = 0; b < tile_.blocks; ++b) {
        EmitMultiplyAdd(this, pairs, Sum(chain, b, pixel), OfBlock(b, weights + b),
                        OfBlock(b, broadcast));
      }
    }
  }
  // The tile's addresses, from where the arguments hold them.
  void LoadResultPointers(size_t dst_at, size_t bias_at) {
    mov(dst_, ptr[args_ + dst_at]);
    if (tile_.bias) mov(bias_, ptr[args_ + bias_at]);
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
