// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/accumulator_epilogue.h"

#include <algorithm>
#include <bit>
#include <variant>

namespace tilewire {
namespace {

cpu::Isa IsaOf(int lanes) { return lanes == 16 ? cpu::Isa::kAvx512 : cpu::Isa::kAvx2; }

}  // namespace

int AccumulatorEpilogue::ScratchCount(int lanes, const PostOps& post_ops) {
  int count = 1;
  for (const PostOp& entry : post_ops.entries()) {
    if (const auto* eltwise = std::get_if<EltwisePostOp>(&entry)) {
      count =
          std::max(count, jit::EltwiseEmitter::ScratchCount(IsaOf(lanes), eltwise->op.algorithm));
    }
  }
  return count;
}

AccumulatorEpilogue::AccumulatorEpilogue(Xbyak::CodeGenerator* generator,
                                         const EpilogueConfig& config, const Registers& registers)
    : g_(generator), config_(config), registers_(registers) {
  for (const PostOp& entry : config_.post_ops.entries()) {
    const auto* eltwise = std::get_if<EltwisePostOp>(&entry);
    emitters_.push_back(eltwise == nullptr
                            ? nullptr
                            : std::make_unique<jit::EltwiseEmitter>(
                                  g_, IsaOf(config_.lanes), eltwise->op,
                                  jit::EltwiseEmitter::Registers{.table = registers_.spare,
                                                                 .scratch = registers_.scratch}));
  }
}

Xbyak::Address AccumulatorEpilogue::Dst(int block, int pixel) const {
  const int64_t offset = block * config_.dst_block_bytes + pixel * config_.dst_pixel_bytes;
  return g_->ptr[registers_.dst + static_cast<int>(offset)];
}

void AccumulatorEpilogue::LoadSums() {
  for (int block = 0; block < config_.blocks; ++block) {
    for (int pixel = 0; pixel < config_.pixels; ++pixel) {
      g_->vmovups(Accumulator(block, pixel), Dst(block, pixel));
    }
  }
}

void AccumulatorEpilogue::AddScaledDst(float scale) {
  const Xbyak::Xmm factor = VectorRegister(config_.lanes, registers_.scratch[0]);
  if (scale != 1.0f) BroadcastConstant(factor, scale);
  for (int block = 0; block < config_.blocks; ++block) {
    for (int pixel = 0; pixel < config_.pixels; ++pixel) {
      const Xbyak::Xmm sum = Accumulator(block, pixel);
      if (scale == 1.0f) {
        g_->vaddps(sum, sum, Dst(block, pixel));
      } else {
        g_->vfmadd231ps(sum, factor, Dst(block, pixel));
      }
    }
  }
}

void AccumulatorEpilogue::AddBias() {
  if (!config_.bias) return;
  const Xbyak::Xmm bias = VectorRegister(config_.lanes, registers_.scratch[0]);
  for (int block = 0; block < config_.blocks; ++block) {
    LoadBias(bias, block);
    for (int pixel = 0; pixel < config_.pixels; ++pixel) {
      g_->vaddps(Accumulator(block, pixel), Accumulator(block, pixel), bias);
    }
  }
}

// The bias is as long as the real channels are: the last block is read under a mask.
void AccumulatorEpilogue::LoadBias(const Xbyak::Xmm& to, int block) {
  const Xbyak::Address from = g_->ptr[registers_.bias + block * config_.lanes * 4];
  const bool masked = config_.tail_lanes != 0 && block == config_.blocks - 1;
  if (!masked) {
    g_->vmovups(to, from);
  } else if (config_.lanes == 16) {
    const Xbyak::Opmask mask(2);
    g_->mov(registers_.spare.cvt32(), (1u << config_.tail_lanes) - 1);
    g_->kmovw(mask, registers_.spare.cvt32());
    g_->vmovups(to | mask | Xbyak::util::T_z, from);
  } else {
    g_->vmovups(to, g_->ptr[g_->rip + tail_mask_]);
    g_->vmaskmovps(to, to, from);
  }
}

void AccumulatorEpilogue::ApplyPostOps(bool skip_sum) {
  const absl::Span<const PostOp> entries = config_.post_ops.entries();
  for (int i = 0; i < static_cast<int>(entries.size()); ++i) {
    if (const auto* sum = std::get_if<SumPostOp>(&entries[i])) {
      if (i > 0 || !skip_sum) AddScaledDst(sum->scale);
    } else {
      ApplyEltwise(std::get<EltwisePostOp>(entries[i]), emitters_[i].get());
    }
  }
}

void AccumulatorEpilogue::ApplyEltwise(const EltwisePostOp& op, jit::EltwiseEmitter* emitter) {
  std::vector<int> sums(config_.blocks * config_.pixels);
  for (int i = 0; i < static_cast<int>(sums.size()); ++i) sums[i] = i;
  emitter->LoadTable();
  emitter->Apply(sums);
  if (op.scale == 1.0f) return;
  const Xbyak::Xmm factor = VectorRegister(config_.lanes, registers_.scratch[0]);
  BroadcastConstant(factor, op.scale);
  for (int i : sums) {
    g_->vmulps(VectorRegister(config_.lanes, i), VectorRegister(config_.lanes, i), factor);
  }
}

void AccumulatorEpilogue::BroadcastConstant(const Xbyak::Xmm& to, float value) {
  const Xbyak::Xmm low = VectorRegister(8, to.getIdx() & 15);
  g_->mov(registers_.spare.cvt32(), std::bit_cast<uint32_t>(value));
  if (config_.lanes == 16) {
    g_->vpbroadcastd(Xbyak::Zmm(to.getIdx()), registers_.spare.cvt32());
  } else {
    g_->vmovd(Xbyak::Xmm(low.getIdx()), registers_.spare.cvt32());
    g_->vbroadcastss(to, Xbyak::Xmm(low.getIdx()));
  }
}

// Padded weights are zeros, but zero times infinity is not, and a post-op need not keep zero.
void AccumulatorEpilogue::ZeroTail() {
  if (config_.tail_lanes == 0) return;
  for (int pixel = 0; pixel < config_.pixels; ++pixel) {
    const Xbyak::Xmm sum = Accumulator(config_.blocks - 1, pixel);
    g_->vandps(sum, sum, g_->ptr[g_->rip + tail_mask_]);
  }
}

void AccumulatorEpilogue::Store() {
  for (int block = 0; block < config_.blocks; ++block) {
    for (int pixel = 0; pixel < config_.pixels; ++pixel) {
      g_->vmovups(Dst(block, pixel), Accumulator(block, pixel));
    }
  }
}

void AccumulatorEpilogue::EmitTables() {
  for (const auto& emitter : emitters_) {
    if (emitter != nullptr) emitter->EmitTable();
  }
  if (config_.tail_lanes == 0) return;
  g_->align(64);
  g_->L(tail_mask_);
  for (int lane = 0; lane < config_.lanes; ++lane)
    g_->dd(lane < config_.tail_lanes ? 0xFFFFFFFFu : 0u);
}

}  // namespace tilewire
