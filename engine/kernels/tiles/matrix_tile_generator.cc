// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/tiles/matrix_tile_generator.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "engine/kernels/products/integer_tile.h"

namespace tilewire {
namespace {

constexpr int kSourceTile = 4, kShortSourceTile = 5, kWeightsTile = 6, kIdleTile = 7;
constexpr int kOffsetBytes = 4;

std::vector<PixelRun> StoredRuns(const MatrixTileConfig& config) {
  if (!config.runs.empty()) return config.runs;
  return {{.first = 0, .count = config.epilogue.pixels, .dst_bytes = 0}};
}

}  // namespace

MatrixTileGenerator::MatrixTileGenerator(absl::string_view name, const MatrixTileConfig& config)
    : Generator(name),
      config_(config),
      rows_{std::min(config.epilogue.pixels, kMatrixRows),
            std::max(0, config.epilogue.pixels - kMatrixRows)},
      products_(MatrixProductsOf(config.epilogue.blocks, rows_[1] > 0 ? 2 : 1, config.planes)),
      end_(this, config.epilogue,
           {.integers = config.numbers != MatrixNumbers::kBf16, .pixels = config.pixels}) {}

Xbyak::Tmm MatrixTileGenerator::SourceTile(int half) const {
  const bool is_short = !HasWholeTiles() && rows_[half] != rows_[0];
  const bool is_apart = is_short || (config_.keeps_src && half == 1);
  return Xbyak::Tmm(is_apart ? kShortSourceTile : kSourceTile);
}

// One plane of each half is all that a step has where it is kept.
bool MatrixTileGenerator::LoadsSource(const MatrixProduct& product) const {
  return config_.keeps_src ? product.block == 0 : product.loads_src;
}

bool MatrixTileGenerator::HasWholeTiles() const {
  return config_.reads_whole_tiles || config_.epilogue.pixels % kMatrixRows == 0;
}

int MatrixTileGenerator::StepsWithEnd() const {
  return MatrixStepsWithEnd(static_cast<int64_t>(config_.steps.size()), config_.planes);
}

void MatrixTileGenerator::Emit() {
  Preamble();
  push(args_);
  mov(tiles_, Argument(offsetof(IntegerTileArgs, tiles)));
  Configure();
  end_.Take(tiles_);
  ZeroSums();
  MultiplyBesideEnd();
  MultiplyAlone();
  pop(args_);
  LeaveSums();
  Postamble();
  end_.Emit(MatrixEndOf(StoredRuns(config_), config_.epilogue.dst_pixel_bytes,
                        StepsWithEnd() * MatrixPartsOfStep(config_.planes)));
  EmitTables();
}

void MatrixTileGenerator::Configure() {
  Xbyak::Label configured;
  if (HasWholeTiles()) {
    mov(spare_, reinterpret_cast<uint64_t>(WholeTiles()));
  } else {
    lea(spare_, ptr[rip + configuration_]);
  }
  cmp(Tiles(offsetof(MatrixTiles, configuration)), spare_);
  je(configured, T_NEAR);
  ldtilecfg(ptr[spare_]);
  mov(Tiles(offsetof(MatrixTiles, configuration)), spare_);
  L(configured);
}

void MatrixTileGenerator::ZeroSums() {
  for (const MatrixProduct& product : products_) {
    if (product.src_plane == 0 && product.weights_plane == 0)
      tilezero(SumTile(product.block, product.half));
  }
}

void MatrixTileGenerator::MultiplyBesideEnd() {
  mov(src_, Argument(offsetof(IntegerTileArgs, src)));
  mov(weights_, Argument(offsetof(IntegerTileArgs, weights)));
  mov(src_row_bytes_, config_.src_pixel);
  mov(line_bytes_, kMatrixLineBytes);
  int part = 0;
  for (int step = 0; step < StepsWithEnd(); ++step) {
    for (const MatrixProduct& product : products_) {
      Multiply(product, src_ + static_cast<int>(config_.steps[step]), step * config_.weights_step);
      for (int i = 0; i < product.parts; ++i) end_.CallPart(part++);
    }
  }
}

// The steps after those. Where they are equally far apart no table says where they begin.
void MatrixTileGenerator::MultiplyAlone() {
  const std::vector<int64_t>& steps = config_.steps;
  const int first = StepsWithEnd();
  const int64_t count = static_cast<int64_t>(steps.size()) - first;
  if (count == 0) return;
  mov(steps_left_, count);
  add(weights_, static_cast<int>(first * config_.weights_step));
  if (!IsEven()) lea(next_step_, ptr[rip + offsets_]);
  if (IsEven()) lea(step_, ptr[src_ + static_cast<int>(steps[first])]);
  Xbyak::Label step;
  L(step);
  if (!IsEven()) {
    movsxd(step_, dword[next_step_]);
    add(next_step_, kOffsetBytes);
    add(step_, src_);
  }
  for (const MatrixProduct& product : products_) Multiply(product, step_ + 0, 0);
  KeepStoresAwake();
  if (IsEven()) add(step_, static_cast<int>(steps[1] - steps[0]));
  add(weights_, static_cast<int>(config_.weights_step));
  dec(steps_left_);
  jnz(step, T_NEAR);
}

// Each so many steps the idle tile's only row goes to the sums in memory, whose end has run.
void MatrixTileGenerator::KeepStoresAwake() {
  constexpr unsigned kProducts = 16;
  const unsigned of_step = static_cast<unsigned>(products_.size());
  const unsigned period = std::bit_floor(std::max(1u, kProducts / of_step));
  Xbyak::Label not_yet;
  if (period > 1) {
    test(steps_left_.cvt32(), period - 1);
    jnz(not_yet, T_NEAR);
  }
  tilestored(ptr[end_.sums() + line_bytes_], Xbyak::Tmm(kIdleTile));
  L(not_yet);
}

bool MatrixTileGenerator::IsEven() const {
  const std::vector<int64_t>& steps = config_.steps;
  for (size_t i = 1; i < steps.size(); ++i) {
    if (steps[i] - steps[i - 1] != steps[1] - steps[0]) return false;
  }
  return true;
}

void MatrixTileGenerator::Multiply(const MatrixProduct& product, const Xbyak::RegExp& step,
                                   int64_t weights_bytes) {
  const Xbyak::Tmm weights(kWeightsTile), src = SourceTile(product.half);
  const Xbyak::Tmm sums = SumTile(product.block, product.half);
  if (product.loads_weights) {
    const int64_t from = weights_bytes + product.block * config_.weights_block +
                         product.weights_plane * config_.weights_plane;
    tileloadd(weights, ptr[weights_ + line_bytes_ + static_cast<int>(from)]);
  }
  if (LoadsSource(product)) {
    const int64_t from =
        product.half * kMatrixRows * config_.src_pixel + product.src_plane * config_.src_plane;
    tileloadd(src, ptr[step + src_row_bytes_ + static_cast<int>(from)]);
  }
  switch (config_.numbers) {
    case MatrixNumbers::kUnsignedBytes:
      return tdpbusd(sums, src, weights);
    case MatrixNumbers::kSignedBytes:
      return tdpbssd(sums, src, weights);
    case MatrixNumbers::kBf16:
      return tdpbf16ps(sums, src, weights);
  }
}

// The sums of this tile, and what else its end reads.
void MatrixTileGenerator::LeaveSums() {
  mov(tiles_, Argument(offsetof(IntegerTileArgs, tiles)));
  lea(spare_, Tiles(offsetof(MatrixTiles, sums)));
  for (int block = 0; block < config_.epilogue.blocks; ++block) {
    for (int half = 0; half < 2 && rows_[half] > 0; ++half) {
      const int to = (block * kMatrixPixels + half * kMatrixRows) * kMatrixLineBytes;
      tilestored(ptr[spare_ + line_bytes_ + to], SumTile(block, half));
    }
  }
  end_.Leave(tiles_);
}

void MatrixTileGenerator::EmitTables() {
  end_.EmitTables();
  if (!HasWholeTiles()) EmitConfiguration();
  if (IsEven()) return;
  L(offsets_);
  for (size_t i = StepsWithEnd(); i < config_.steps.size(); ++i)
    dd(static_cast<uint32_t>(config_.steps[i]));
}

// As ldtilecfg reads it: the palette, the bytes of a row of each tile from byte 16 on, its rows
// from byte 48 on.
void MatrixTileGenerator::EmitConfiguration() {
  std::array<uint8_t, 64> bytes{1};
  const auto set = [&bytes](int tile, int rows) {
    bytes[16 + 2 * tile] = kMatrixLineBytes;
    bytes[48 + tile] = static_cast<uint8_t>(rows);
  };
  for (const MatrixProduct& product : products_) {
    set(SumTile(product.block, product.half).getIdx(), rows_[product.half]);
    set(SourceTile(product.half).getIdx(), rows_[product.half]);
  }
  set(kWeightsTile, kMatrixRows);
  set(kIdleTile, 1);
  align(kMatrixLineBytes);
  L(configuration_);
  for (uint8_t byte : bytes) db(byte);
}

}  // namespace tilewire
