// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/backward/weights_gradient_tiles.h"

#include <algorithm>
#include <utility>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/jit/generator.h"

namespace tilewire::convolution {
namespace {

constexpr float kOne = 1;  // the source whose products with diff_dst are the gradient of the bias
constexpr int64_t kFewChannels = 3;  // of src, at most, where a tile has several taps
constexpr int kBlocksOfTaps = 2;     // vectors of output channels of such a tile

// Channels times taps of such a tile.
int MostSources(const VectorUnit& unit) {
  return WeightsGradientGenerator::MostSums(unit) / kBlocksOfTaps;
}

// Every displacement and increment of the generated code lies within one of these spans.
absl::Status RequireNearPixels(const WeightsGradientProblem& problem) {
  constexpr int64_t kBlocks = WeightsGradientGenerator::kMostBlocks;
  const Geometry& geometry = problem.geometry;
  const int64_t lanes = problem.unit.lanes();
  if (AreNear({CheckedMul(problem.src.channel, lanes),
               CheckedProduct({geometry.tap_step[2], problem.src.spatial[2], geometry.kernel[2]}),
               CheckedMul(geometry.stride[2], problem.src.spatial[2]),
               CheckedMul(geometry.stride[1], problem.src.spatial[1]),
               CheckedMul(problem.dst.block, kBlocks), CheckedMul(problem.dst.spatial[2], 1),
               CheckedMul(problem.dst.spatial[1], 1),
               CheckedMul(problem.weights.oc_block, kBlocks)}))
    return absl::OkStatus();
  return Unimplemented("strides exceed 32-bit displacements");
}

void Call(const std::unique_ptr<const jit::Generator>& tile, const WeightsGradientArgs& args) {
  tile->entry<WeightsGradientGenerator::Function>()(&args);
}

WeightsGradientArgs ArgsOf(const WeightsGradientTiles::Call& call) {
  return {.src = call.src,
          .diff_dst = call.diff_dst,
          .diff_weights = call.diff_weights,
          .rows = call.rows,
          .pixels = call.pixels,
          .src_blocks = call.src_blocks,
          .src_ahead = call.ahead.src * kFloatBytes,
          .dst_ahead = call.ahead.dst * kFloatBytes,
          .dst_ahead_step = call.dst_ahead_step * kFloatBytes,
          .replaces = call.replaces ? 1 : 0};
}

}  // namespace

int WeightsGradientTiles::MostBlocks() const {
  return TapsAtOnce() > 1 ? kBlocksOfTaps : WeightsGradientGenerator::kMostBlocks;
}

int WeightsGradientTiles::TapsAtOnce() const {
  const Geometry& geometry = problem_.geometry;
  if (geometry.ic > kFewChannels) return 1;
  return static_cast<int>(std::min(MostSources(problem_.unit) / geometry.ic, geometry.kernel[2]));
}

absl::Status WeightsGradientTiles::Compile(absl::string_view name, int blocks, bool tail,
                                           int64_t channels) {
  ABSL_RETURN_IF_ERROR(RequireNearPixels(problem_));
  ABSL_RETURN_IF_ERROR(CompileTap(name, blocks, tail, static_cast<int>(channels)));
  const int taps = TapsAtOnce(), last = static_cast<int>(problem_.geometry.kernel[2] % taps);
  if (taps > 1) ABSL_RETURN_IF_ERROR(CompileTaps(name, blocks, tail, taps));
  if (last > 1) ABSL_RETURN_IF_ERROR(CompileTaps(name, blocks, tail, last));
  return problem_.has_bias ? CompileBias(name, blocks, tail) : absl::OkStatus();
}

WeightsGradientTile WeightsGradientTiles::ConfigOf(int blocks, bool tail) const {
  const WeightsGradientProblem& p = problem_;
  WeightsGradientTile config{.unit = p.unit};
  config.blocks = blocks;
  config.tail_lanes = tail ? static_cast<int>(p.geometry.oc % p.unit.lanes()) : 0;
  config.dst_block = p.dst.block * kFloatBytes;
  config.dst_pixel = p.dst.spatial[2] * kFloatBytes;
  config.dst_row = p.dst.spatial[1] * kFloatBytes;
  return config;
}

WeightsGradientTile WeightsGradientTiles::ConfigOfTaps(int blocks, bool tail) const {
  const WeightsGradientProblem& p = problem_;
  WeightsGradientTile config = ConfigOf(blocks, tail);
  config.src_pixel = p.geometry.stride[2] * p.src.spatial[2] * kFloatBytes;
  config.src_row = p.geometry.stride[1] * p.src.spatial[1] * kFloatBytes;
  config.weights_block = p.weights.oc_block * kFloatBytes;
  config.fetches_ahead = true;
  return config;
}

absl::Status WeightsGradientTiles::CompileTap(absl::string_view name, int blocks, bool tail,
                                              int channels) {
  Tile& tile = taps_[blocks - 1][channels - 1][tail];
  if (tile != nullptr) return absl::OkStatus();
  const WeightsGradientProblem& p = problem_;
  WeightsGradientTile config = ConfigOfTaps(blocks, tail);
  config.sources = config.sources_of_row = channels;
  config.src_source = p.src.channel * kFloatBytes;
  config.weights_source = p.weights.channel * kFloatBytes;
  ABSL_ASSIGN_OR_RETURN(tile, jit::Compile<WeightsGradientGenerator>(name, config));
  return absl::OkStatus();
}

// A row of taps for each channel.
absl::Status WeightsGradientTiles::CompileTaps(absl::string_view name, int blocks, bool tail,
                                               int taps) {
  Tile& tile = rows_of_taps_[blocks - 1][taps - 1][tail];
  if (tile != nullptr) return absl::OkStatus();
  const WeightsGradientProblem& p = problem_;
  WeightsGradientTile config = ConfigOfTaps(blocks, tail);
  config.sources = static_cast<int>(p.geometry.ic) * taps;
  config.sources_of_row = taps;
  config.src_source = p.geometry.tap_step[2] * p.src.spatial[2] * kFloatBytes;
  config.src_source_row = p.src.channel * kFloatBytes;
  config.weights_source = p.weights.taps[2] * kFloatBytes;
  config.weights_source_row = p.weights.channel * kFloatBytes;
  ABSL_ASSIGN_OR_RETURN(tile, jit::Compile<WeightsGradientGenerator>(name, config));
  return absl::OkStatus();
}

absl::Status WeightsGradientTiles::CompileBias(absl::string_view name, int blocks, bool tail) {
  Tile& tile = biases_[blocks - 1][tail];
  if (tile != nullptr) return absl::OkStatus();
  WeightsGradientTile config = ConfigOf(blocks, tail);
  config.chains = WeightsGradientGenerator::kChainsOfBias;
  config.weights_block = problem_.unit.bytes();
  ABSL_ASSIGN_OR_RETURN(tile, jit::Compile<WeightsGradientGenerator>(name, config));
  return absl::OkStatus();
}

void WeightsGradientTiles::RunTap(const WeightsGradientTiles::Call& call, int64_t channels) const {
  WeightsGradientArgs args = ArgsOf(call);
  args.src_block = problem_.src.block * kFloatBytes;
  args.weights_src_block = problem_.weights.ic_block * kFloatBytes;
  convolution::Call(taps_[call.blocks - 1][channels - 1][call.tail], args);
}

void WeightsGradientTiles::RunTaps(const WeightsGradientTiles::Call& call, int taps) const {
  convolution::Call(rows_of_taps_[call.blocks - 1][taps - 1][call.tail], ArgsOf(call));
}

void WeightsGradientTiles::RunBias(const WeightsGradientTiles::Call& call) const {
  WeightsGradientArgs args = ArgsOf(call);
  args.src = &kOne;
  convolution::Call(biases_[call.blocks - 1][call.tail], args);
}

int64_t WeightsGradientTiles::code_bytes() const {
  int64_t bytes = 0;
  const auto count = [&bytes](const Tails& tails) {
    for (const Tile& tile : tails)
      bytes += tile == nullptr ? 0 : static_cast<int64_t>(tile->code_bytes());
  };
  for (const auto& of_blocks : taps_) std::ranges::for_each(of_blocks, count);
  for (const auto& of_blocks : rows_of_taps_) std::ranges::for_each(of_blocks, count);
  std::ranges::for_each(biases_, count);
  return bytes;
}

}  // namespace tilewire::convolution
