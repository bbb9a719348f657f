// SPDX-License-Identifier: Apache-2.0
//
// The end of every generated convolution and inner product: a tile of sums lies in vector registers, block-major
// (register block * pixels + pixel); bias and post-ops are applied to it, lanes behind the last
// channel are zeroed, and it is stored. Used while generating; thread-compatible.
#ifndef ENGINE_PRIMITIVES_ACCUMULATOR_EPILOGUE_H_
#define ENGINE_PRIMITIVES_ACCUMULATOR_EPILOGUE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/cpu/isa.h"
#include "engine/jit/eltwise_emitter.h"
#include "engine/primitives/attributes.h"
#include "xbyak/xbyak.h"

namespace tilewire {

// zmm for 16 lanes, ymm for 8.
inline Xbyak::Xmm VectorRegister(int lanes, int index) {
  if (lanes == 16) return Xbyak::Zmm(index);
  return Xbyak::Ymm(index);
}

struct EpilogueConfig {
  int lanes = 16;
  int blocks = 1;  // of `lanes` output channels
  int pixels = 1;
  int64_t dst_pixel_bytes = 0, dst_block_bytes = 0;
  bool bias = false;
  int tail_lanes = 0;  // channels in the last block; 0: all of them
  PostOps post_ops;
  bool operator==(const EpilogueConfig&) const = default;
};

class AccumulatorEpilogue {
 public:
  struct Registers {
    Xbyak::Reg64 dst, bias;    // of the tile's first pixel and channel
    Xbyak::Reg64 spare;        // overwritten
    std::vector<int> scratch;  // vector registers that are overwritten, ScratchCount() at least
  };

  // The vector registers that the post-ops need beside the accumulators; at least 1.
  static int ScratchCount(int lanes, const PostOps& post_ops);

  AccumulatorEpilogue(Xbyak::CodeGenerator* generator, const EpilogueConfig& config,
                      const Registers& registers);

  void LoadSums();                 // accumulators = dst
  void AddScaledDst(float scale);  // accumulators += scale * dst
  void AddBias();
  // `skip_sum`: the chain's first entry is a sum that has been added already.
  void ApplyPostOps(bool skip_sum);
  void ZeroTail();
  void Store();
  void EmitTables();  // behind the last ret

 private:
  Xbyak::Xmm Accumulator(int block, int pixel) const {
    return VectorRegister(config_.lanes, block * config_.pixels + pixel);
  }
  Xbyak::Address Dst(int block, int pixel) const;
  void LoadBias(const Xbyak::Xmm& to, int block);
  void BroadcastConstant(const Xbyak::Xmm& to, float value);
  void ApplyEltwise(const EltwisePostOp& op, jit::EltwiseEmitter* emitter);

  Xbyak::CodeGenerator* const g_;
  const EpilogueConfig config_;
  const Registers registers_;
  std::vector<std::unique_ptr<jit::EltwiseEmitter>> emitters_;  // one a post-op; null for a sum
  Xbyak::Label tail_mask_;
};

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_ACCUMULATOR_EPILOGUE_H_
