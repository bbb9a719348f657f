// SPDX-License-Identifier: Apache-2.0
//
// Emits the end of every generated convolution, inner product and matrix product. A tile of sums
// stands in vector registers, block after block: register block * pixels + pixel. Sums that a
// kernel keeps elsewhere, in matrix tiles or between the calls of a long reduction, reach them
// through memory: see LoadSums(). Then, in this order, bias and post-ops are applied, the lanes
// after the last channel are zeroed or left out, and the tile is stored. Sums of integers become
// f32 first and are scaled after the bias (tests/engine/rows.txt Q02).
//
// Used while generating; thread-compatible.
#ifndef ENGINE_KERNELS_TILES_ACCUMULATOR_EPILOGUE_H_
#define ENGINE_KERNELS_TILES_ACCUMULATOR_EPILOGUE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/jit/eltwise_emitter.h"
#include "engine/jit/vector_unit.h"
#include "engine/kernels/attributes.h"
#include "engine/kernels/elements/vector_conversion.h"
#include "engine/memory/data_type.h"
#include "xbyak/xbyak.h"

namespace tilewire {

struct EpilogueConfig {
  VectorUnit unit;
  int blocks = 1;  // each a vector of output channels
  int pixels = 1;
  int64_t dst_pixel_bytes = 0, dst_block_bytes = 0;
  bool bias = false;
  int tail_lanes = 0;  // channels in the last block; 0: all of them
  PostOps post_ops;
  DataType bias_type = DataType::kF32, dst_type = DataType::kF32;
  bool compensation = false;        // is added to integer sums
  bool pixel_compensation = false;  // one number per pixel is, too
  bool keeps_integers = false;      // these are stored as they are, in s32: nothing else follows
  bool scales = false;              // multiply integer sums after the bias
  bool bias_after_scales = false;   // multiply them before it instead
  bool packed_channels = false;     // the bytes after the last channel are not touched
  // For bf16: whether the first block is the second half of its line, and whether the last one is
  // alone in its line, the other half of which is zeroed.
  bool begins_inside_line = false, pads_line = false;
  bool operator==(const EpilogueConfig&) const = default;

  // The vector registers that a loop leaves free once the sums are complete.
  std::vector<int> FreeVectors() const { return unit.RegistersFrom(blocks * pixels); }
  // From the first block to another; dst_block_bytes go from line to line if dst is bf16.
  int64_t DstBlockOffset(int block) const;
  // Whether the block is the second half of a line of bf16.
  bool EndsLine(int block) const { return (block + (begins_inside_line ? 1 : 0)) % 2 == 1; }
};

// Where a tile's sums are in memory, as 32-bit numbers. A vector begins at every base + block *
// block_bytes + pixel * pixel_bytes; all of its lanes are read.
struct SumsInMemory {
  Xbyak::RegExp base;
  int64_t block_bytes = 0, pixel_bytes = 0;
};

// The slopes of the chain's PRelu, with zeros after them so that a vector may be read from any;
// empty where there is none.
std::vector<float> PaddedSlopes(const PostOps& post_ops, const VectorUnit& unit);
// Each of them in every lane of a vector, where the lanes are pixels of one channel.
std::vector<float> VectorsOfSlopes(const PostOps& post_ops, const VectorUnit& unit);

class AccumulatorEpilogue {
 public:
  struct Registers {
    Xbyak::Reg64 dst, bias;    // of the tile's first pixel and channel
    Xbyak::Reg64 spare;        // overwritten
    std::vector<int> scratch;  // overwritten vector registers, at least ScratchCount()
    // Read only where the configuration has them; padded to whole vectors.
    Xbyak::Reg64 scales = Xbyak::Reg64(), compensation = Xbyak::Reg64();
    // The slopes of a PRelu, padded likewise; may be `bias`, which is read before it.
    Xbyak::Reg64 slopes = Xbyak::Reg64();
    Xbyak::Reg64 pixel_compensation = Xbyak::Reg64();  // of the tile's first pixel
  };

  // How many vector registers the post-ops need beside the sums; at least 1.
  static int ScratchCount(const PostOps& post_ops);
  // The same for a destination that is not f32.
  static int IntegerScratchCount(const PostOps& post_ops);

  AccumulatorEpilogue(Xbyak::CodeGenerator* generator, const EpilogueConfig& config,
                      const Registers& registers);

  void LoadSums(const SumsInMemory& from);  // sums = memory
  SumsInMemory Dst() const;                 // f32 sums that wait in the destination
  void AddScaledDst(float scale);           // sums += scale * dst
  void AddBias();
  // `skip_sum`: the chain's first entry is a sum that has been added already.
  void ApplyPostOps(bool skip_sum);
  void ZeroTail();
  void Store();
  void FinishIntegers();  // everything in order, from s32 sums to dst
  void EmitTables();      // after the last ret

 private:
  Xbyak::Xmm Accumulator(int block, int pixel) const {
    return config_.unit.Vector(block * config_.pixels + pixel);
  }
  Xbyak::Xmm Scratch(int i) const { return config_.unit.Vector(registers_.scratch[i]); }
  void CompensateSums();
  void ConvertSums();  // of integers to f32
  void Scale();
  Xbyak::RegExp Dst(int block, int pixel) const;
  // f32 for sums that are stored as they are, since that is how 32 bits are.
  DataType StoredType() const { return config_.keeps_integers ? DataType::kF32 : config_.dst_type; }
  bool HasTail(int block) const { return config_.tail_lanes != 0 && block == config_.blocks - 1; }
  bool IsPartial(int block) const { return config_.packed_channels && HasTail(block); }
  bool StoresFour() const;
  void StoreLines();  // of bf16
  void StoreHalfLine(int block, int pixel);
  // Whether the entry is a relu that ends the chain: saturation to u8 does the same.
  bool IsAbsorbed(int entry) const;
  void LoadBias(const Xbyak::Xmm& to, int block);
  void BroadcastConstant(const Xbyak::Xmm& to, float value);
  void ApplyEltwise(const EltwisePostOp& op, jit::EltwiseEmitter* emitter);
  void ApplyPRelu();

  Xbyak::CodeGenerator* const g_;
  const EpilogueConfig config_;
  const Registers registers_;
  std::vector<std::unique_ptr<jit::EltwiseEmitter>> emitters_;  // one per eltwise; else null
  VectorConversion conversion_;
};

}  // namespace tilewire

#endif  // ENGINE_KERNELS_TILES_ACCUMULATOR_EPILOGUE_H_
