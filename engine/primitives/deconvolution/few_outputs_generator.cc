// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/deconvolution/few_outputs_generator.h"

#include <algorithm>

#include "engine/kernels/elements/lane_sums.h"

namespace tilewire::deconvolution {
namespace {

constexpr int64_t kFarthestRow = 1 << 30;  // in bytes, that a displacement reaches

// The end of vectors 0 to rows - 1, each a row of the tile.
EpilogueConfig EpilogueOf(const FewOutputsConfig& config) {
  EpilogueConfig epilogue =
      EpilogueOfLaneSums(config.unit, config.pixels * config.columns, config.post_ops);
  epilogue.pixels = config.rows;
  epilogue.dst_pixel_bytes = config.dst_row_bytes;
  return epilogue;
}

}  // namespace

FewOutputsGenerator::FewOutputsGenerator(absl::string_view name, const FewOutputsConfig& config)
    : TileLoop(name, EpilogueOf(config), config.loop),
      config_(config),
      tail_(this, config.unit,
            {.spare = rax, .opmask = k3, .vector = config.unit.registers() - 1}) {}

void FewOutputsGenerator::EmitTile() {
  if (config_.loop.tail_channels > 0) tail_.Set(config_.loop.tail_channels);
  SumBatch(0);
  if (config_.rows == 2) {
    vmovaps(FirstBatch(), Vector(0));
    SumBatch(1);
    JoinBatches();
  }
  if (config_.bias) AddBias();
  epilogue_.ApplyPostOps(/*skip_sum=*/false);
  config_.dst_pixel_bytes == 4 ? epilogue_.Store() : StoreApart();
}

void FewOutputsGenerator::EmitTables() {
  epilogue_.EmitTables();
  if (config_.loop.tail_channels > 0) tail_.EmitTable();
}

// Vector 0 = the outputs of a batch.
void FewOutputsGenerator::SumBatch(int batch) {
  batch_ = batch;
  for (int i = 0; i < config_.unit.lanes(); ++i) config_.unit.Zero(this, Vector(i));
  EmitTaps(batch * PixelsOfBatch());
  EmitLaneSums(this, config_.unit, Spare(0));
}

// Memory after the last channel of src may be anything. Where tiles hold one row, the next row of
// src is asked for in time: the phases along the height read this one again.
void FewOutputsGenerator::EmitBlock(int channels) {
  const int bytes = config_.unit.bytes(), lanes = config_.unit.lanes();
  const int columns = config_.columns, rows = config_.rows;
  const Xbyak::Xmm loaded = Spare(kMostPhases);
  for (int f = 0; f < columns * rows; ++f) vmovups(Spare(f), ptr[weights_ + f * bytes]);
  const int pixels = std::min(PixelsOfBatch(), config_.pixels - batch_ * PixelsOfBatch());
  for (int p = 0; p < pixels; ++p) {
    tail_.Load(loaded, ptr[src_ + p * bytes], channels < lanes);
    if (rows == 1 && config_.src_row_bytes < kFarthestRow)
      prefetcht1(ptr[src_ + static_cast<int>(p * bytes + config_.src_row_bytes)]);
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < columns; ++c) {
        const Xbyak::Xmm sum = Vector(r * lanes / 2 + p * columns + c);
        vfmadd231ps(sum, Spare(r * columns + c), loaded);
      }
    }
  }
}

// Vectors 0 and 1 = the lower halves of both batches, and the upper ones.
void FewOutputsGenerator::JoinBatches() {
  const int first = FirstBatch().getIdx();
  if (config_.unit.bytes() == 64) {
    constexpr int kLower = 0x44, kUpper = 0xEE;
    vshuff64x2(Xbyak::Zmm(1), Xbyak::Zmm(first), Xbyak::Zmm(0), kUpper);
    vshuff64x2(Xbyak::Zmm(0), Xbyak::Zmm(first), Xbyak::Zmm(0), kLower);
    return;
  }
  constexpr int kLower = 0x20, kUpper = 0x31;
  vperm2f128(Xbyak::Ymm(1), Xbyak::Ymm(first), Xbyak::Ymm(0), kUpper);
  vperm2f128(Xbyak::Ymm(0), Xbyak::Ymm(first), Xbyak::Ymm(0), kLower);
}

void FewOutputsGenerator::AddBias() {
  vbroadcastss(Spare(0), ptr[bias_]);
  for (int r = 0; r < config_.rows; ++r) vaddps(Vector(r), Vector(r), Spare(0));
}

// Vector 0 is stored four lanes at a time, which move to the lowest first.
void FewOutputsGenerator::StoreApart() {
  for (int p = 0; p < config_.pixels; ++p) {
    const int lane = p % 4;
    if (lane == 0 && p > 0) {
      const Xbyak::Xmm low(1);
      config_.unit.bytes() == 64 ? vextractf32x4(low, Xbyak::Zmm(0), static_cast<uint8_t>(p / 4))
                                 : vextractf128(low, Xbyak::Ymm(0), static_cast<uint8_t>(p / 4));
    }
    const Xbyak::Address to = dword[dst_ + static_cast<int>(p * config_.dst_pixel_bytes)];
    const Xbyak::Xmm quarter(p < 4 ? 0 : 1);
    lane == 0 ? vmovss(to, quarter) : vextractps(to, quarter, static_cast<uint8_t>(lane));
  }
}

}  // namespace tilewire::deconvolution
