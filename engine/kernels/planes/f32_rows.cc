// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/planes/f32_rows.h"

#include <algorithm>
#include <cstring>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/kernels/planes/plane_operands.h"
#include "engine/memory/narrow_floats.h"

namespace tilewire {
namespace {

constexpr int kAtOnce = 8;  // rows
constexpr int64_t kOutputsBytes = kPlaneLanes * sizeof(float);
constexpr int64_t kResults = kPlaneRows * kPlaneBlocks * kPlaneLanes;

float* ResultOf(float* results, int row, int64_t block) {
  return results + (row * kPlaneBlocks + block % kPlaneBlocks) * kPlaneLanes;
}

// Reads numbers of f32 or bf16 as f32.
void LoadNumbers(DataType type, const std::byte* from, int64_t count, float* to) {
  if (type == DataType::kF32) {
    std::memcpy(to, from, count * sizeof(float));
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    uint16_t bits;
    std::memcpy(&bits, from + i * sizeof(bits), sizeof(bits));
    to[i] = WidenBf16(bits);
  }
}

void StoreNumbers(DataType type, const float* from, int64_t count, std::byte* to) {
  if (type == DataType::kF32) {
    std::memcpy(to, from, count * sizeof(float));
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    const uint16_t bits = ToBf16(from[i]);
    std::memcpy(to + i * sizeof(bits), &bits, sizeof(bits));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<const F32Rows>> F32Rows::Create(absl::string_view name,
                                                               const PlaneProductShape& shape) {
  std::unique_ptr<F32Rows> apart(new F32Rows(shape));
  for (bool last : {false, true}) {
    if (!last && apart->Blocks() == 1) continue;
    ABSL_ASSIGN_OR_RETURN(apart->tiles_[last],
                          jit::Compile<StridedTile>(name, apart->ConfigOf(last)));
  }
  return apart;
}

StridedTileConfig F32Rows::ConfigOf(bool last) const {
  StridedTileConfig config{.epilogue = {.unit = VectorUnit::Of(cpu::Isa::kAmx)}};
  config.k = shape_.FlatChannels();
  config.src_k_bytes = sizeof(float);
  config.src_row_bytes = config.k * config.src_k_bytes;
  config.weights_k_bytes =
      IsCopied(last ? Blocks() - 1 : 0) ? kOutputsBytes : shape_.weights_channel;
  config.epilogue.pixels = kAtOnce;
  config.epilogue.dst_pixel_bytes = config.epilogue.dst_block_bytes = kOutputsBytes;
  config.epilogue.bias = shape_.bias;
  config.epilogue.tail_lanes = last ? static_cast<int>(shape_.outputs % kPlaneLanes) : 0;
  config.epilogue.post_ops = shape_.post_ops;
  return config;
}

int64_t F32Rows::code_bytes() const {
  int64_t bytes = 0;
  for (const auto& tile : tiles_) bytes += tile == nullptr ? 0 : tile->code_bytes();
  return bytes;
}

int64_t F32Rows::bytes() const {
  const int64_t floats =
      shape_.FlatChannels() * (kAtOnce + kPlaneLanes) + kAtOnce * kPlaneLanes + kResults;
  return RoundUp(floats * static_cast<int64_t>(sizeof(float)), kOutputsBytes);
}

F32Rows::Parts F32Rows::PartsOf(std::byte* memory) const {
  Parts parts;
  parts.block = reinterpret_cast<float*>(memory);
  parts.tile = parts.block + shape_.FlatChannels() * kPlaneLanes;
  parts.results = parts.tile + kAtOnce * kPlaneLanes;
  parts.rows = parts.results + kResults;
  return parts;
}

int64_t F32Rows::Blocks() const { return DivUp(shape_.outputs, int64_t{kPlaneLanes}); }

int64_t F32Rows::OutputsOf(int64_t block) const {
  return std::min<int64_t>(kPlaneLanes, shape_.outputs - block * kPlaneLanes);
}

bool F32Rows::IsCopied(int64_t block) const {
  const bool neighbours = shape_.weights_output == static_cast<int64_t>(sizeof(float));
  return shape_.weights_are_split || !neighbours ||
         (!shape_.weights_are_padded && OutputsOf(block) < kPlaneLanes);
}

WeightsBlock F32Rows::BlockOf(const std::byte* weights, int64_t block, std::byte* memory) const {
  const std::byte* from = weights + block * shape_.weights_output_block;
  if (!IsCopied(block))
    return {from, shape_.weights_channel, shape_.weights_block, shape_.weights_tap};
  float* to = PartsOf(memory).block;
  if (shape_.weights_are_split) {
    RestoreWeights(layout_,
                   weights + layout_.GroupOffset(block / kPlaneBlocks) +
                       block % kPlaneBlocks * kPlaneBlockBytes,
                   to);
    return {memory, kOutputsBytes, kPlaneLanes * kOutputsBytes, 0};
  }
  const int64_t outputs = OutputsOf(block);
  for (int64_t channel = 0; channel < shape_.channels; ++channel, to += kPlaneLanes) {
    const std::byte* line = from + channel / kPlaneLanes * shape_.weights_block +
                            channel % kPlaneLanes * shape_.weights_channel;
    std::fill(to + outputs, to + kPlaneLanes, 0.0f);
    for (int64_t o = 0; o < outputs; ++o)
      std::memcpy(to + o, line + o * shape_.weights_output, sizeof(float));
  }
  return {memory, kOutputsBytes, kPlaneLanes * kOutputsBytes, 0};
}

std::byte* F32Rows::DstOf(const Rows& rows, int row, int64_t block) const {
  return rows.dst + (rows.first + row) * shape_.dst_row + shape_.DstBlockOffset(block);
}

const float* F32Rows::BiasOf(const Rows& rows, int64_t block) const {
  if (!shape_.bias) return nullptr;
  return reinterpret_cast<const float*>(rows.operands.bias + rows.weights.bias) +
         block * kPlaneLanes;
}

void F32Rows::Multiply(const Rows& rows, int64_t group, std::byte* memory) const {
  std::vector<int> left;
  for (int row = 0; row < rows.count; ++row) {
    if ((rows.selected >> row & 1) != 0) left.push_back(row);
  }
  const int64_t end = std::min((group + 1) * kPlaneBlocks, Blocks());
  for (size_t first = 0; first < left.size(); first += kAtOnce) {
    const size_t last = std::min(left.size(), first + kAtOnce);
    const std::vector<int> which(left.begin() + first, left.begin() + last);
    Gather(rows, which, PartsOf(memory).rows);
    for (int64_t block = group * kPlaneBlocks; block < end; ++block)
      MultiplyBlock(rows, which, block, memory);
  }
}

// In the order in which weights have their channels: [block][tap][16].
void F32Rows::Gather(const Rows& rows, const std::vector<int>& which, float* to) const {
  const int64_t flat = shape_.FlatChannels();
  std::fill_n(to, kAtOnce * flat, 0.0f);
  for (int64_t tap = 0; tap < shape_.taps; ++tap) {
    const auto copy = [&](const PlaneRows::Run& run) {
      for (size_t i = 0; run.src != nullptr && i < which.size(); ++i) {
        const int row = which[i] - run.first;
        if (row < 0 || row >= run.rows) continue;
        const std::byte* from = run.src + row * run.row_bytes;
        for (int64_t c = 0; c < shape_.channels; c += kPlaneLanes, from += shape_.src_block) {
          const int64_t count = std::min<int64_t>(kPlaneLanes, shape_.channels - c);
          std::memcpy(to + i * flat + c * shape_.taps + tap * kPlaneLanes, from,
                      count * sizeof(float));
        }
      }
    };
    rows.operands.src->ForEachRun(rows.product, rows.first, rows.count, tap, copy);
  }
}

void F32Rows::MultiplyBlock(const Rows& rows, const std::vector<int>& which, int64_t block,
                            std::byte* memory) const {
  const Parts parts = PartsOf(memory);
  const WeightsBlock weights = BlockOf(rows.operands.weights + rows.weights.offset, block, memory);
  const int64_t count = shape_.packed_dst ? OutputsOf(block) : int64_t{kPlaneLanes};
  std::fill_n(parts.tile, kAtOnce * kPlaneLanes, 0.0f);
  for (size_t i = 0; shape_.post_ops.HasSum() && i < which.size(); ++i)
    LoadNumbers(shape_.dst_type, DstOf(rows, which[i], block), count, parts.tile + i * kPlaneLanes);
  const StridedTileArgs args = {.src = parts.rows,
                                .weights = reinterpret_cast<const float*>(weights.begin),
                                .bias = BiasOf(rows, block),
                                .dst = parts.tile};
  tiles_[block + 1 == Blocks()]->entry<StridedTile::Function>()(&args);
  for (size_t i = 0; i < which.size(); ++i) {
    float* const result = ResultOf(parts.results, which[i], block);
    std::fill_n(result, kPlaneLanes, 0.0f);
    std::copy_n(parts.tile + i * kPlaneLanes, OutputsOf(block), result);
  }
}

void F32Rows::Store(const Rows& rows, int64_t group, const std::byte* memory) const {
  float* const results = PartsOf(const_cast<std::byte*>(memory)).results;
  const int64_t end = std::min((group + 1) * kPlaneBlocks, Blocks());
  for (int64_t block = group * kPlaneBlocks; block < end; ++block) {
    const int64_t count = shape_.packed_dst ? OutputsOf(block) : int64_t{kPlaneLanes};
    for (int row = 0; row < rows.count; ++row) {
      if ((rows.selected >> row & 1) == 0) continue;
      StoreNumbers(shape_.dst_type, ResultOf(results, row, block), count, DstOf(rows, row, block));
    }
  }
}

}  // namespace tilewire
