// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/tiles/accumulator_epilogue.h"

#include <algorithm>
#include <bit>
#include <variant>

#include "engine/jit/prelu.h"
#include "engine/kernels/planes/bf16_rounding.h"

namespace tilewire {
namespace {

const Xbyak::Opmask kMask(1), kTail(2);
constexpr int kPReluScratch = 3;  // slopes, and what EmitPRelu() overwrites
constexpr int64_t kHalfLineBytes = kBf16LineBytes / 2;

}  // namespace

int64_t EpilogueConfig::DstBlockOffset(int block) const {
  if (dst_type != DataType::kBf16) return block * dst_block_bytes;
  const int64_t before = begins_inside_line ? 1 : 0, halves = before + block;
  return halves / 2 * dst_block_bytes + (halves % 2 - before) * kHalfLineBytes;
}

std::vector<float> PaddedSlopes(const PostOps& post_ops, const VectorUnit& unit) {
  if (post_ops.Slopes() == nullptr) return {};
  std::vector<float> slopes = *post_ops.Slopes();
  slopes.resize(slopes.size() + unit.lanes());
  return slopes;
}

std::vector<float> VectorsOfSlopes(const PostOps& post_ops, const VectorUnit& unit) {
  std::vector<float> slopes;
  if (post_ops.Slopes() == nullptr) return slopes;
  for (float slope : *post_ops.Slopes()) slopes.insert(slopes.end(), unit.lanes(), slope);
  return slopes;
}

int AccumulatorEpilogue::ScratchCount(const PostOps& post_ops) {
  int count = post_ops.Slopes() == nullptr ? 1 : kPReluScratch;
  for (const PostOp& entry : post_ops.entries()) {
    if (const auto* eltwise = std::get_if<EltwisePostOp>(&entry)) {
      count = std::max(count, jit::EltwiseEmitter::ScratchCount(eltwise->op.function));
    }
  }
  return count;
}

int AccumulatorEpilogue::IntegerScratchCount(const PostOps& post_ops) {
  return std::max(VectorConversion::kScratchCount, ScratchCount(post_ops));
}

AccumulatorEpilogue::AccumulatorEpilogue(Xbyak::CodeGenerator* generator,
                                         const EpilogueConfig& config, const Registers& registers)
    : g_(generator),
      config_(config),
      registers_(registers),
      conversion_(
          generator, config.unit, config.tail_lanes,
          {.spare = registers.spare, .scratch = registers.scratch, .tail = kTail, .mask = kMask}) {
  for (const PostOp& entry : config_.post_ops.entries()) {
    const auto* eltwise = std::get_if<EltwisePostOp>(&entry);
    emitters_.push_back(eltwise == nullptr
                            ? nullptr
                            : std::make_unique<jit::EltwiseEmitter>(
                                  g_, config_.unit, eltwise->op,
                                  jit::EltwiseEmitter::Registers{.table = registers_.spare,
                                                                 .scratch = registers_.scratch}));
  }
}

Xbyak::RegExp AccumulatorEpilogue::Dst(int block, int pixel) const {
  const int64_t offset = config_.DstBlockOffset(block) + pixel * config_.dst_pixel_bytes;
  return registers_.dst + static_cast<int>(offset);
}

SumsInMemory AccumulatorEpilogue::Dst() const {
  return {registers_.dst, config_.dst_block_bytes, config_.dst_pixel_bytes};
}

void AccumulatorEpilogue::LoadSums(const SumsInMemory& from) {
  for (int block = 0; block < config_.blocks; ++block) {
    for (int pixel = 0; pixel < config_.pixels; ++pixel) {
      const int64_t offset = block * from.block_bytes + pixel * from.pixel_bytes;
      g_->vmovups(Accumulator(block, pixel), g_->ptr[from.base + static_cast<int>(offset)]);
    }
  }
}

void AccumulatorEpilogue::AddScaledDst(float scale) {
  const Xbyak::Xmm factor = Scratch(0);
  if (scale != 1.0f) BroadcastConstant(factor, scale);
  if (IsPartial(config_.blocks - 1)) conversion_.LoadTailMask();
  for (int block = 0; block < config_.blocks; ++block) {
    for (int pixel = 0; pixel < config_.pixels; ++pixel) {
      const Xbyak::Xmm sum = Accumulator(block, pixel);
      const bool in_memory = config_.dst_type == DataType::kF32 && !IsPartial(block);
      const Xbyak::Xmm loaded = Scratch(in_memory ? 0 : 1);
      if (!in_memory) {
        conversion_.Load(config_.dst_type, loaded, Dst(block, pixel), IsPartial(block));
      }
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

void AccumulatorEpilogue::CompensateSums() {
  const Xbyak::Xmm compensation = Scratch(0), of_pixel = Scratch(1);
  for (int block = 0; block < config_.blocks; ++block) {
    if (config_.compensation) {
      g_->vmovups(compensation, g_->ptr[registers_.compensation + block * config_.unit.bytes()]);
    }
    for (int pixel = 0; pixel < config_.pixels; ++pixel) {
      const Xbyak::Xmm sum = Accumulator(block, pixel);
      if (config_.compensation) g_->vpaddd(sum, sum, compensation);
      if (!config_.pixel_compensation) continue;
      g_->vpbroadcastd(of_pixel, g_->ptr[registers_.pixel_compensation + pixel * 4]);
      g_->vpaddd(sum, sum, of_pixel);
    }
  }
}

void AccumulatorEpilogue::ConvertSums() {
  for (int i = 0; i < config_.blocks * config_.pixels; ++i)
    g_->vcvtdq2ps(config_.unit.Vector(i), config_.unit.Vector(i));
}

void AccumulatorEpilogue::Scale() {
  if (!config_.scales) return;
  const Xbyak::Xmm scale = Scratch(0);
  for (int block = 0; block < config_.blocks; ++block) {
    g_->vmovups(scale, g_->ptr[registers_.scales + block * config_.unit.bytes()]);
    for (int pixel = 0; pixel < config_.pixels; ++pixel) {
      g_->vmulps(Accumulator(block, pixel), Accumulator(block, pixel), scale);
    }
  }
}

void AccumulatorEpilogue::AddBias() {
  if (!config_.bias) return;
  const Xbyak::Xmm bias = Scratch(0);
  for (int block = 0; block < config_.blocks; ++block) {
    LoadBias(bias, block);
    for (int pixel = 0; pixel < config_.pixels; ++pixel) {
      g_->vaddps(Accumulator(block, pixel), Accumulator(block, pixel), bias);
    }
  }
}

// The bias ends with the last real channel, so that the last block is read under a mask.
void AccumulatorEpilogue::LoadBias(const Xbyak::Xmm& to, int block) {
  if (HasTail(block)) conversion_.LoadTailMask();
  conversion_.Load(config_.bias_type, to, registers_.bias + block * config_.unit.bytes(),
                   HasTail(block));
}

bool AccumulatorEpilogue::IsAbsorbed(int entry) const {
  const absl::Span<const PostOp> entries = config_.post_ops.entries();
  const auto* op = std::get_if<EltwisePostOp>(&entries[entry]);
  return config_.dst_type == DataType::kU8 && entry == static_cast<int>(entries.size()) - 1 &&
         op != nullptr && op->op.function == EltwiseAlgorithm::kRelu && op->op.alpha == 0 &&
         op->scale == 1;
}

void AccumulatorEpilogue::ApplyPostOps(bool skip_sum) {
  const absl::Span<const PostOp> entries = config_.post_ops.entries();
  for (int i = 0; i < static_cast<int>(entries.size()); ++i) {
    if (const auto* sum = std::get_if<SumPostOp>(&entries[i])) {
      if (i > 0 || !skip_sum) AddScaledDst(sum->scale);
    } else if (std::holds_alternative<PReluPostOp>(entries[i])) {
      ApplyPRelu();
    } else if (!IsAbsorbed(i)) {
      ApplyEltwise(std::get<EltwisePostOp>(entries[i]), emitters_[i].get());
    }
  }
}

void AccumulatorEpilogue::ApplyPRelu() {
  const Xbyak::Xmm slope = Scratch(0);
  for (int block = 0; block < config_.blocks; ++block) {
    g_->vmovups(slope, g_->ptr[registers_.slopes + block * config_.unit.bytes()]);
    for (int pixel = 0; pixel < config_.pixels; ++pixel) {
      jit::EmitPRelu(g_, config_.unit, Accumulator(block, pixel), slope, Scratch(1), Scratch(2),
                     kMask);
    }
  }
}

void AccumulatorEpilogue::ApplyEltwise(const EltwisePostOp& op, jit::EltwiseEmitter* emitter) {
  std::vector<int> sums(config_.blocks * config_.pixels);
  for (int i = 0; i < static_cast<int>(sums.size()); ++i) sums[i] = i;
  emitter->LoadTable();
  emitter->Apply(sums);
  if (op.scale == 1.0f) return;
  const Xbyak::Xmm factor = Scratch(0);
  BroadcastConstant(factor, op.scale);
  for (int i : sums) {
    g_->vmulps(config_.unit.Vector(i), config_.unit.Vector(i), factor);
  }
}

void AccumulatorEpilogue::BroadcastConstant(const Xbyak::Xmm& to, float value) {
  conversion_.Broadcast(to, std::bit_cast<uint32_t>(value));
}

// Padded weights are zeros, but zero times infinity is not, and a post-op may turn zero into
// something else.
void AccumulatorEpilogue::ZeroTail() {
  if (config_.tail_lanes == 0 || config_.packed_channels) return;
  for (int pixel = 0; pixel < config_.pixels; ++pixel) {
    conversion_.ZeroTail(Accumulator(config_.blocks - 1, pixel));
  }
}

// Whether the bytes of four blocks lie side by side and are stored at once.
bool AccumulatorEpilogue::StoresFour() const {
  const bool bytes = SizeOf(config_.dst_type) == 1;
  return bytes && conversion_.StoresFour() && config_.blocks == 4 &&
         config_.dst_block_bytes == config_.unit.lanes() && !IsPartial(3);
}

void AccumulatorEpilogue::StoreLines() {
  for (int block = 0; block < config_.blocks; ++block) {
    const bool is_whole = !config_.EndsLine(block) && block + 1 < config_.blocks;
    for (int pixel = 0; pixel < config_.pixels; ++pixel) {
      if (!is_whole) {
        StoreHalfLine(block, pixel);
        continue;
      }
      const Xbyak::Xmm first = Accumulator(block, pixel);
      g_->vcvtne2ps2bf16(first, Accumulator(block + 1, pixel), first);
      g_->vmovups(g_->ptr[Dst(block, pixel)], first);
    }
    block += is_whole ? 1 : 0;
  }
}

// The rounding leaves zeros in the upper half of the register.
void AccumulatorEpilogue::StoreHalfLine(int block, int pixel) {
  const Xbyak::Zmm line(Accumulator(block, pixel).getIdx());
  const Xbyak::Ymm half(line.getIdx());
  const bool pads = config_.pads_line && block == config_.blocks - 1;
  g_->vcvtneps2bf16(half, line);
  g_->vmovups(g_->ptr[Dst(block, pixel)], pads ? static_cast<const Xbyak::Xmm&>(line) : half);
}

void AccumulatorEpilogue::Store() {
  if (config_.dst_type == DataType::kBf16) return StoreLines();
  if (IsPartial(config_.blocks - 1)) conversion_.LoadTailMask();
  conversion_.BeginStores(StoredType());
  for (int pixel = 0; StoresFour() && pixel < config_.pixels; ++pixel) {
    const Xbyak::Xmm values[4] = {Accumulator(0, pixel), Accumulator(1, pixel),
                                  Accumulator(2, pixel), Accumulator(3, pixel)};
    conversion_.StoreFour(config_.dst_type, values, Dst(0, pixel));
  }
  if (StoresFour()) return;
  for (int block = 0; block < config_.blocks; ++block) {
    for (int pixel = 0; pixel < config_.pixels; ++pixel) {
      conversion_.Store(StoredType(), Accumulator(block, pixel), Dst(block, pixel),
                        IsPartial(block));
    }
  }
}

void AccumulatorEpilogue::FinishIntegers() {
  CompensateSums();
  if (config_.keeps_integers) return Store();
  ConvertSums();
  if (!config_.bias_after_scales) AddBias();
  Scale();
  if (config_.bias_after_scales) AddBias();
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
