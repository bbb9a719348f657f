// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/matrix_tile.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/kernels/ended_parts.h"
#include "engine/kernels/matrix_plan.h"

namespace tilewire {
namespace {

constexpr int kTileRows = 16;
constexpr int kSourceTile = 4, kShortSourceTile = 5, kWeightsTile = 6;
constexpr int kPixelBytes = 64, kBlockBytes = kMatrixPixels * kPixelBytes;  // of sums

std::vector<PixelRun> RunsOf(const IntegerTileConfig& config) {
  if (!config.runs.empty()) return config.runs;
  return {{.first = 0, .count = config.epilogue.pixels, .dst_bytes = 0}};
}

class MatrixTileGenerator final : public jit::Generator {
 public:
  MatrixTileGenerator(absl::string_view name, const IntegerTileConfig& config)
      : Generator(name),
        config_(config),
        rows_{std::min(config.epilogue.pixels, kTileRows),
              std::max(0, config.epilogue.pixels - kTileRows)},
        products_(MatrixProductsOf(config.epilogue.blocks, rows_[1] > 0 ? 2 : 1)),
        steps_(MatrixStepsOf(config.loops, config.input_blocks)),
        end_parts_(MatrixEndParts(static_cast<int64_t>(steps_.size()))),
        end_(this, config.epilogue, kBlockBytes, kPixelBytes, {sums_, EpilogueRegisters()}) {}

 private:
  // Of the products.
  const Xbyak::Reg64 args_ = rdi, tiles_ = r11;  // before the first and after the last
  const Xbyak::Reg64 src_ = rsi, weights_ = rdx, src_row_bytes_ = rcx, line_bytes_ = r8;
  const Xbyak::Reg64 step_ = r11;  // src of the current one
  const Xbyak::Reg64 steps_left_ = r9, next_step_ = r10;
  // Of the end of the tile before this one; the bias, or the compensation of pixels.
  const Xbyak::Reg64 parts_ = rbx, sums_ = r12, dst_ = r13, bias_ = r14, scales_ = r15,
                     compensation_ = rbp;
  const Xbyak::Reg64 spare_ = rax;

  Xbyak::Tmm SumTile(int block, int half) const { return Xbyak::Tmm(2 * block + half); }
  Xbyak::Tmm SourceTile(int half) const {
    return Xbyak::Tmm(rows_[half] == rows_[0] ? kSourceTile : kShortSourceTile);
  }
  AccumulatorEpilogue::Registers EpilogueRegisters() const {
    return {.dst = dst_,
            .bias = bias_,
            .spare = spare_,
            .scratch = {},
            .scales = scales_,
            .compensation = compensation_,
            .pixel_compensation = bias_};
  }
  Xbyak::Address Argument(size_t offset) { return qword[args_ + static_cast<int>(offset)]; }
  Xbyak::Address Tiles(size_t offset) { return qword[tiles_ + static_cast<int>(offset)]; }

  void Emit() override {
    Preamble();
    push(args_);
    mov(tiles_, Argument(offsetof(IntegerTileArgs, tiles)));
    Configure();
    TakeEnd();
    ZeroSums();
    MultiplyBesideEnd();
    MultiplyAlone();
    pop(args_);
    LeaveEnd();
    Postamble();
    EmitFinish();
    EmitTables();
  }

  void Configure() {
    Xbyak::Label configured;
    lea(spare_, ptr[rip + configuration_]);
    cmp(Tiles(offsetof(MatrixTiles, configuration)), spare_);
    je(configured, T_NEAR);
    ldtilecfg(ptr[spare_]);
    mov(Tiles(offsetof(MatrixTiles, configuration)), spare_);
    L(configured);
  }

  // The end that is due, or one without pixels.
  void TakeEnd() {
    Xbyak::Label due;
    LoadEnd();
    mov(parts_, Tiles(offsetof(MatrixTiles, parts)));
    test(parts_, parts_);
    jnz(due, T_NEAR);
    lea(parts_, ptr[rip + no_parts_]);
    L(due);
  }

  void LoadEnd() {
    lea(sums_, Tiles(offsetof(MatrixTiles, sums)));
    mov(dst_, Tiles(offsetof(MatrixTiles, dst)));
    mov(bias_, Tiles(offsetof(MatrixTiles, bias)));
    mov(scales_, Tiles(offsetof(MatrixTiles, scales)));
    mov(compensation_, Tiles(offsetof(MatrixTiles, compensation)));
  }

  void ZeroSums() {
    for (const MatrixProduct& product : products_) tilezero(SumTile(product.block, product.half));
  }

  void MultiplyBesideEnd() {
    mov(src_, Argument(offsetof(IntegerTileArgs, src)));
    mov(weights_, Argument(offsetof(IntegerTileArgs, weights)));
    mov(src_row_bytes_, config_.loops.src_pixel);
    mov(line_bytes_, kMatrixStepBytes);
    int part = 0;
    for (int step = 0; step < end_parts_ / kMatrixPartsOfStep; ++step) {
      for (const MatrixProduct& product : products_) {
        Multiply(product, src_ + static_cast<int>(steps_[step]), step * kMatrixWeightsBytes);
        for (int i = 0; i < product.parts; ++i) CallPart(part++);
      }
    }
  }

  void CallPart(int part) {
    lea(spare_, ptr[parts_ + EndedParts::kEntryBytes * part]);
    call(spare_);
  }

  // The steps after those. Where they are equally far apart no table says where they begin.
  void MultiplyAlone() {
    const int first = end_parts_ / kMatrixPartsOfStep;
    const int64_t count = static_cast<int64_t>(steps_.size()) - first;
    if (count == 0) return;
    mov(steps_left_, count);
    add(weights_, static_cast<int>(first * kMatrixWeightsBytes));
    if (!IsEven()) lea(next_step_, ptr[rip + offsets_]);
    if (IsEven()) lea(step_, ptr[src_ + static_cast<int>(steps_[first])]);
    Xbyak::Label step;
    L(step);
    if (!IsEven()) {
      movsxd(step_, dword[next_step_]);
      add(next_step_, kOffsetBytes);
      add(step_, src_);
    }
    for (const MatrixProduct& product : products_) Multiply(product, step_ + 0, 0);
    if (IsEven()) add(step_, static_cast<int>(steps_[1] - steps_[0]));
    add(weights_, static_cast<int>(kMatrixWeightsBytes));
    dec(steps_left_);
    jnz(step, T_NEAR);
  }

  bool IsEven() const {
    for (size_t i = 1; i < steps_.size(); ++i) {
      if (steps_[i] - steps_[i - 1] != steps_[1] - steps_[0]) return false;
    }
    return true;
  }

  void Multiply(const MatrixProduct& product, const Xbyak::RegExp& step, int64_t weights_bytes) {
    const Xbyak::Tmm weights(kWeightsTile), src = SourceTile(product.half);
    const Xbyak::Tmm sums = SumTile(product.block, product.half);
    if (product.loads_weights) {
      const int64_t from = weights_bytes + product.block * config_.loops.weights_oc_block;
      tileloadd(weights, ptr[weights_ + line_bytes_ + static_cast<int>(from)]);
    }
    if (product.loads_src) {
      const int64_t from = product.half * kTileRows * config_.loops.src_pixel;
      tileloadd(src, ptr[step + src_row_bytes_ + static_cast<int>(from)]);
    }
    config_.signed_src ? tdpbssd(sums, src, weights) : tdpbusd(sums, src, weights);
  }

  // The sums of this tile, and what else its end reads.
  void LeaveEnd() {
    mov(tiles_, Argument(offsetof(IntegerTileArgs, tiles)));
    lea(sums_, Tiles(offsetof(MatrixTiles, sums)));
    for (const MatrixProduct& product : products_) {
      const int to = product.block * kBlockBytes + product.half * kTileRows * kPixelBytes;
      tilestored(ptr[sums_ + line_bytes_ + to], SumTile(product.block, product.half));
    }
    lea(spare_, ptr[rip + end_.entries()]);
    mov(Tiles(offsetof(MatrixTiles, parts)), spare_);
    lea(spare_, ptr[rip + finish_]);
    mov(Tiles(offsetof(MatrixTiles, finish)), spare_);
    LoadEpilogueArguments(this, config_.epilogue, EpilogueRegisters());
    mov(Tiles(offsetof(MatrixTiles, dst)), dst_);
    mov(Tiles(offsetof(MatrixTiles, bias)), bias_);
    mov(Tiles(offsetof(MatrixTiles, scales)), scales_);
    mov(Tiles(offsetof(MatrixTiles, compensation)), compensation_);
  }

  // MatrixTiles::finish: the end of a tile after which none comes.
  void EmitFinish() {
    align(kTileRows);
    L(finish_);
    Preamble();
    mov(tiles_, rdi);
    LoadEnd();
    lea(parts_, ptr[rip + end_.entries()]);
    for (int part = 0; part < end_parts_; ++part) CallPart(part);
    Postamble();
  }

  void EmitTables() {
    EndedParts::EmitNone(this, &no_parts_, end_parts_);
    end_.Emit(MatrixEndOf(RunsOf(config_), config_.epilogue.dst_pixel_bytes, end_parts_));
    end_.EmitTables();
    EmitConfiguration();
    if (IsEven()) return;
    L(offsets_);
    for (size_t i = end_parts_ / kMatrixPartsOfStep; i < steps_.size(); ++i)
      dd(static_cast<uint32_t>(steps_[i]));
  }

  // As ldtilecfg reads it: the palette, the bytes of a row of each tile from byte 16 on, its rows
  // from byte 48 on.
  void EmitConfiguration() {
    std::array<uint8_t, 64> bytes{1};
    const auto set = [&bytes](int tile, int rows) {
      bytes[16 + 2 * tile] = kMatrixStepBytes;
      bytes[48 + tile] = static_cast<uint8_t>(rows);
    };
    for (const MatrixProduct& product : products_) {
      set(SumTile(product.block, product.half).getIdx(), rows_[product.half]);
      set(SourceTile(product.half).getIdx(), rows_[product.half]);
    }
    set(kWeightsTile, kTileRows);
    align(kPixelBytes);
    L(configuration_);
    for (uint8_t byte : bytes) db(byte);
  }

  static constexpr int kOffsetBytes = 4;

  const IntegerTileConfig config_;
  const std::array<int, 2> rows_;              // of the halves
  const std::vector<MatrixProduct> products_;  // of a step
  const std::vector<int64_t> steps_;
  const int end_parts_;
  EndedParts end_;
  Xbyak::Label configuration_, offsets_, finish_, no_parts_;
};

// As ldtilecfg reads it: palette 1, and all tiles of 16 rows of 64 bytes.
struct alignas(64) WholeTiles {
  std::array<uint8_t, 16> palette{1};
  std::array<uint16_t, 16> row_bytes{64, 64, 64, 64, 64, 64, 64, 64};
  std::array<uint8_t, 16> rows{16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(WholeTiles) == 64);

}  // namespace

absl::StatusOr<std::unique_ptr<const jit::Generator>> GenerateMatrixTile(
    absl::string_view name, const IntegerTileConfig& config) {
  return jit::Compile<MatrixTileGenerator>(name, config);
}

void FinishMatrixTiles(MatrixTiles* tiles) {
  if (tiles->parts != nullptr) tiles->finish(tiles);
  tiles->parts = nullptr;
  ReleaseMatrixTiles();
}

void ConfigureWholeTiles() {
  static constexpr WholeTiles kWholeTiles;
  asm volatile("ldtilecfg %0" ::"m"(kWholeTiles) : "memory");
}

void ReleaseMatrixTiles() { asm volatile("tilerelease" ::: "memory"); }

}  // namespace tilewire
