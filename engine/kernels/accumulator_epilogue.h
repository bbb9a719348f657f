// SPDX-License-Identifier: Apache-2.0
//
// The end of every generated convolution and inner product: a tile of sums lies in vector
// registers, block-major (register block * pixels + pixel); bias and post-ops are applied to it,
// lanes behind the last channel are zeroed or left out, and it is stored. Sums of integers become
// f32 first, and are scaled behind the bias (ROWS.md Q02). Used while generating;
// thread-compatible.
#ifndef ENGINE_KERNELS_ACCUMULATOR_EPILOGUE_H_
#define ENGINE_KERNELS_ACCUMULATOR_EPILOGUE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/cpu/isa.h"
#include "engine/jit/eltwise_emitter.h"
#include "engine/kernels/attributes.h"
#include "engine/kernels/vector_conversion.h"
#include "engine/memory/data_type.h"
#include "xbyak/xbyak.h"

namespace tilewire {

// zmm for 16 lanes, ymm for 8.
inline Xbyak::Xmm VectorRegister(int lanes, int index) {
  if (lanes == 16) return Xbyak::Zmm(index);
  return Xbyak::Ymm(index);
}

// As many as there are of them.
inline int VectorRegisterCount(int lanes) { return lanes == 16 ? 32 : 16; }

// The registers from `first` on.
std::vector<int> FreeVectorRegisters(int first, int count);

struct EpilogueConfig {
  int lanes = 16;
  int blocks = 1;  // of `lanes` output channels
  int pixels = 1;
  int64_t dst_pixel_bytes = 0, dst_block_bytes = 0;
  bool bias = false;
  int tail_lanes = 0;  // channels in the last block; 0: all of them
  PostOps post_ops;
  DataType bias_type = DataType::kF32, dst_type = DataType::kF32;
  bool compensation = false,
       scales = false;  // of integer sums: added to them; multiplied behind the bias
  bool packed_channels =
      false;  // what follows the last channel belongs to somebody else: it is not touched
  bool operator==(const EpilogueConfig&) const = default;

  // What a loop leaves free once the sums are complete.
  std::vector<int> FreeVectors() const {
    return FreeVectorRegisters(blocks * pixels, VectorRegisterCount(lanes));
  }
};

class AccumulatorEpilogue {
 public:
  struct Registers {
    Xbyak::Reg64 dst, bias;    // of the tile's first pixel and channel
    Xbyak::Reg64 spare;        // overwritten
    std::vector<int> scratch;  // vector registers that are overwritten, ScratchCount() at least
    // Where the configuration has them; padded to whole vectors.
    Xbyak::Reg64 scales = Xbyak::Reg64(), compensation = Xbyak::Reg64();
  };

  // The vector registers that the post-ops need beside the accumulators; at least 1.
  static int ScratchCount(int lanes, const PostOps& post_ops);
  // And for a destination that is not f32.
  static int IntegerScratchCount(int lanes, const PostOps& post_ops);

  AccumulatorEpilogue(Xbyak::CodeGenerator* generator, const EpilogueConfig& config,
                      const Registers& registers);

  void LoadSums();                 // accumulators = dst
  void AddScaledDst(float scale);  // accumulators += scale * dst
  void AddBias();
  // `skip_sum`: the chain's first entry is a sum that has been added already.
  void ApplyPostOps(bool skip_sum);
  void ZeroTail();
  void Store();
  void FinishIntegers();  // all of it in order, from s32 sums to dst
  void EmitTables();      // behind the last ret

 private:
  Xbyak::Xmm Accumulator(int block, int pixel) const {
    return VectorRegister(config_.lanes, block * config_.pixels + pixel);
  }
  void ConvertSums();  // of integers, to f32, with their compensation
  void Scale();
  Xbyak::RegExp Dst(int block, int pixel) const;
  bool HasTail(int block) const { return config_.tail_lanes != 0 && block == config_.blocks - 1; }
  bool IsPartial(int block) const { return config_.packed_channels && HasTail(block); }
  bool StoresFour() const;
  // A relu that ends the chain: saturation to u8 does the same.
  bool IsAbsorbed(int entry) const;
  void LoadBias(const Xbyak::Xmm& to, int block);
  void BroadcastConstant(const Xbyak::Xmm& to, float value);
  void ApplyEltwise(const EltwisePostOp& op, jit::EltwiseEmitter* emitter);

  Xbyak::CodeGenerator* const g_;
  const EpilogueConfig config_;
  const Registers registers_;
  std::vector<std::unique_ptr<jit::EltwiseEmitter>> emitters_;  // one a post-op; null for a sum
  VectorConversion conversion_;
};

}  // namespace tilewire

#endif  // ENGINE_KERNELS_ACCUMULATOR_EPILOGUE_H_
