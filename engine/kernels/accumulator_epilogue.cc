// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/accumulator_epilogue.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <variant>

namespace tilewire {
namespace {

const Xbyak::Opmask kMask(1), kTail(2);

cpu::Isa IsaOf(int lanes) { return lanes == 16 ? cpu::Isa::kAvx512 : cpu::Isa::kAvx2; }

}  // namespace

std::vector<int> FreeVectorRegisters(int first, int count) {
  std::vector<int> free(count - first);
  std::iota(free.begin(), free.end(), first);
  return free;
}

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

int AccumulatorEpilogue::IntegerScratchCount(int lanes, const PostOps& post_ops) {
  return std::max(VectorConversion::kScratchCount, ScratchCount(lanes, post_ops));
}

AccumulatorEpilogue::AccumulatorEpilogue(Xbyak::CodeGenerator* generator,
                                         const EpilogueConfig& config, const Registers& registers)
    : g_(generator),
      config_(config),
      registers_(registers),
      conversion_(
          generator, config.lanes, config.tail_lanes,
          {.spare = registers.spare, .scratch = registers.scratch, .tail = kTail, .mask = kMask}) {
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

Xbyak::RegExp AccumulatorEpilogue::Dst(int block, int pixel) const {
  const int64_t offset = block * config_.dst_block_bytes + pixel * config_.dst_pixel_bytes;
  return registers_.dst + static_cast<int>(offset);
}

void AccumulatorEpilogue::LoadSums() {
  for (int block = 0; block < config_.blocks; ++block) {
    for (int pixel = 0; pixel < config_.pixels; ++pixel) {
      g_->vmovups(Accumulator(block, pixel), g_->ptr[Dst(block, pixel)]);
    }
  }
}

void AccumulatorEpilogue::AddScaledDst(float scale) {
  const Xbyak::Xmm factor = VectorRegister(config_.lanes, registers_.scratch[0]);
  if (scale != 1.0f) BroadcastConstant(factor, scale);
  if (IsPartial(config_.blocks - 1)) conversion_.LoadTailMask();
  for (int block = 0; block < config_.blocks; ++block) {
    for (int pixel = 0; pixel < config_.pixels; ++pixel) {
      const Xbyak::Xmm sum = Accumulator(block, pixel);
      const bool in_memory = config_.dst_type == DataType::kF32 && !IsPartial(block);
      const Xbyak::Xmm loaded =
          VectorRegister(config_.lanes, registers_.scratch[in_memory ? 0 : 1]);
      if (!in_memory)
        conversion_.Load(config_.dst_type, loaded, Dst(block, pixel), IsPartial(block));
      const Xbyak::Address memory = g_->ptr[Dst(block, pixel)];
      const Xbyak::Operand& before =
          in_memory ? static_cast<const Xbyak::Operand&>(memory) : loaded;
      if (scale == 1.0f) {
        g_->vaddps(sum, sum, before);
      } else {
        g_->vfmadd231ps(sum, factor, before);
      }
    }
  }
}

void AccumulatorEpilogue::ConvertSums() {
  const Xbyak::Xmm compensation = VectorRegister(config_.lanes, registers_.scratch[0]);
  for (int block = 0; block < config_.blocks; ++block) {
    if (config_.compensation) {
      g_->vmovups(compensation, g_->ptr[registers_.compensation + block * config_.lanes * 4]);
    }
    for (int pixel = 0; pixel < config_.pixels; ++pixel) {
      const Xbyak::Xmm sum = Accumulator(block, pixel);
      if (config_.compensation) g_->vpaddd(sum, sum, compensation);
      g_->vcvtdq2ps(sum, sum);
    }
  }
}

void AccumulatorEpilogue::Scale() {
  if (!config_.scales) return;
  const Xbyak::Xmm scale = VectorRegister(config_.lanes, registers_.scratch[0]);
  for (int block = 0; block < config_.blocks; ++block) {
    g_->vmovups(scale, g_->ptr[registers_.scales + block * config_.lanes * 4]);
    for (int pixel = 0; pixel < config_.pixels; ++pixel) {
      g_->vmulps(Accumulator(block, pixel), Accumulator(block, pixel), scale);
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
  if (HasTail(block)) conversion_.LoadTailMask();
  conversion_.Load(config_.bias_type, to, registers_.bias + block * config_.lanes * 4,
                   HasTail(block));
}

bool AccumulatorEpilogue::IsAbsorbed(int entry) const {
  const absl::Span<const PostOp> entries = config_.post_ops.entries();
  const auto* op = std::get_if<EltwisePostOp>(&entries[entry]);
  return config_.dst_type == DataType::kU8 && entry == static_cast<int>(entries.size()) - 1 &&
         op != nullptr && op->op.algorithm == EltwiseAlgorithm::kRelu && op->op.alpha == 0 &&
         op->scale == 1;
}

void AccumulatorEpilogue::ApplyPostOps(bool skip_sum) {
  const absl::Span<const PostOp> entries = config_.post_ops.entries();
  for (int i = 0; i < static_cast<int>(entries.size()); ++i) {
    if (const auto* sum = std::get_if<SumPostOp>(&entries[i])) {
      if (i > 0 || !skip_sum) AddScaledDst(sum->scale);
    } else if (!IsAbsorbed(i)) {
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
  conversion_.Broadcast(to, std::bit_cast<uint32_t>(value));
}

// Padded weights are zeros, but zero times infinity is not, and a post-op need not keep zero.
void AccumulatorEpilogue::ZeroTail() {
  if (config_.tail_lanes == 0 || config_.packed_channels) return;
  for (int pixel = 0; pixel < config_.pixels; ++pixel) {
    conversion_.ZeroTail(Accumulator(config_.blocks - 1, pixel));
  }
}

// Four blocks whose bytes lie side by side.
bool AccumulatorEpilogue::StoresFour() const {
  const bool bytes = SizeOf(config_.dst_type) == 1;
  return bytes && config_.lanes == 16 && config_.blocks == 4 && config_.dst_block_bytes == 16 &&
         !IsPartial(3);
}

void AccumulatorEpilogue::Store() {
  if (IsPartial(config_.blocks - 1)) conversion_.LoadTailMask();
  conversion_.BeginStores(config_.dst_type);
  for (int pixel = 0; StoresFour() && pixel < config_.pixels; ++pixel) {
    const Xbyak::Xmm values[4] = {Accumulator(0, pixel), Accumulator(1, pixel),
                                  Accumulator(2, pixel), Accumulator(3, pixel)};
    conversion_.StoreFour(config_.dst_type, values, Dst(0, pixel));
  }
  if (StoresFour()) return;
  for (int block = 0; block < config_.blocks; ++block) {
    for (int pixel = 0; pixel < config_.pixels; ++pixel) {
      conversion_.Store(config_.dst_type, Accumulator(block, pixel), Dst(block, pixel),
                        IsPartial(block));
    }
  }
}

void AccumulatorEpilogue::FinishIntegers() {
  ConvertSums();
  AddBias();
  Scale();
  ApplyPostOps(/*skip_sum=*/false);
  ZeroTail();
  Store();
}

void AccumulatorEpilogue::EmitTables() {
  for (const auto& emitter : emitters_) {
    if (emitter != nullptr) emitter->EmitTable();
  }
  conversion_.EmitTable();
}

}  // namespace tilewire
