// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/matrix_tile.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/kernels/spilled_sums.h"

namespace tilewire {
namespace {

constexpr int kTileRows = 16;
constexpr int kSourceTile = 4, kShortSourceTile = 5, kWeightsTile = 6;
// On the stack: the sums, block after block, and after them the stack pointer as it was.
constexpr int kPixelBytes = 64, kBlockBytes = kMatrixPixels * kPixelBytes;
constexpr int kSumsBytes = kMatrixBlocks * kBlockBytes;

class MatrixTileGenerator final : public TapLoopGenerator {
 public:
  MatrixTileGenerator(absl::string_view name, const IntegerTileConfig& config)
      : TapLoopGenerator(name, config.epilogue, config.loops, offsetof(IntegerTileArgs, loops)),
        config_(config),
        rows_{std::min(pixels_, kTileRows), std::max(0, pixels_ - kTileRows)},
        spilled_(this, config.epilogue, /*integers=*/true, kBlockBytes, kPixelBytes,
                 {sums_, chunks_left_, EpilogueRegisters()}) {}

 private:
  // r14 and r15 are free, as offsets of output blocks are displacements here.
  const Xbyak::Reg64 weights_row_bytes_ = stride_, src_row_bytes_ = stride3_;
  // After the reduction.
  const Xbyak::Reg64 sums_ = src_block_, chunks_left_ = rcx;

  int halves() const { return rows_[1] > 0 ? 2 : 1; }
  Xbyak::Tmm SumTile(int block, int half) const { return Xbyak::Tmm(2 * block + half); }
  Xbyak::Tmm SourceTile(int half) const {
    return Xbyak::Tmm(rows_[half] == rows_[0] ? kSourceTile : kShortSourceTile);
  }

  void Emit() override {
    Preamble();
    mov(rax, rsp);
    sub(rsp, kSumsBytes + kPixelBytes);
    and_(rsp, -kPixelBytes);
    mov(qword[rsp + kSumsBytes], rax);
    ReserveStack();
    Configure();
    ZeroSums();
    LoadPointers(offsetof(IntegerTileArgs, src), offsetof(IntegerTileArgs, weights));
    mov(weights_row_bytes_, kMatrixStepBytes);
    mov(src_row_bytes_, loops_.src_pixel);
    ReduceBlocks();
    ReleaseStack();
    Finish();
    mov(rsp, qword[rsp + kSumsBytes]);
    Postamble();
    spilled_.EmitTables();
    EmitConfiguration();
  }

  void Configure() {
    Xbyak::Label configured;
    lea(rax, ptr[rip + configuration_]);
    cmp(Argument(offsetof(IntegerTileArgs, configuration)), rax);
    je(configured, T_NEAR);
    ldtilecfg(ptr[rax]);
    mov(Argument(offsetof(IntegerTileArgs, configuration)), rax);
    L(configured);
  }

  // As ldtilecfg reads it: the palette, the bytes of a row of each tile from byte 16 on, its rows
  // from byte 48 on.
  void EmitConfiguration() {
    std::array<uint8_t, 64> bytes{1};
    const auto set = [&bytes](int tile, int rows) {
      bytes[16 + 2 * tile] = kMatrixStepBytes;
      bytes[48 + tile] = static_cast<uint8_t>(rows);
    };
    for (int half = 0; half < halves(); ++half) {
      for (int block = 0; block < blocks_; ++block) set(SumTile(block, half).getIdx(), rows_[half]);
      set(SourceTile(half).getIdx(), rows_[half]);
    }
    set(kWeightsTile, kTileRows);
    align(kPixelBytes);
    L(configuration_);
    for (uint8_t byte : bytes) db(byte);
  }

  void ZeroSums() override {
    for (int block = 0; block < blocks_; ++block) {
      for (int half = 0; half < halves(); ++half) tilezero(SumTile(block, half));
    }
  }

  int InstructionsOfChannel(int) const override { return 9; }

  // Back and forth over the halves, so that the second block begins with the half that the first
  // one ended with.
  void ReduceChannel(const TapRun&, int channel) override {
    int loaded = -1;
    for (int block = 0; block < blocks_; ++block) {
      const int64_t weights = channel * kMatrixWeightsBytes + block * loops_.weights_oc_block;
      tileloadd(Xbyak::Tmm(kWeightsTile),
                ptr[weights_ + weights_row_bytes_ + static_cast<int>(weights)]);
      for (int i = 0; i < halves(); ++i) {
        const int half = block % 2 == 0 ? i : halves() - 1 - i;
        const int64_t src = channel * kMatrixStepBytes + half * kTileRows * loops_.src_pixel;
        if (half != loaded)
          tileloadd(SourceTile(half), ptr[src_ + src_row_bytes_ + static_cast<int>(src)]);
        loaded = half;
        AddProducts(SumTile(block, half), SourceTile(half));
      }
    }
  }

  void AddProducts(const Xbyak::Tmm& sums, const Xbyak::Tmm& src) {
    const Xbyak::Tmm weights(kWeightsTile);
    config_.signed_src ? tdpbssd(sums, src, weights) : tdpbusd(sums, src, weights);
  }

  void Finish() {
    for (int block = 0; block < blocks_; ++block) {
      for (int half = 0; half < halves(); ++half) {
        const int to = block * kBlockBytes + half * kTileRows * kPixelBytes;
        tilestored(ptr[rsp + weights_row_bytes_ + to], SumTile(block, half));
      }
    }
    LoadEpilogueArguments(this, config_.epilogue, EpilogueRegisters());
    std::vector<PixelRun> runs = config_.runs;
    if (runs.empty()) runs.push_back({.first = 0, .count = pixels_, .dst_bytes = 0});
    int64_t dst = 0;  // that src_ points to
    for (const PixelRun& run : runs) {
      lea(sums_, ptr[rsp + run.first * kPixelBytes]);
      AddBytes(src_, run.dst_bytes - dst);
      dst = run.dst_bytes + spilled_.Finish(run.count);
    }
  }

  AccumulatorEpilogue::Registers EpilogueRegisters() const {
    return {src_, weights_, rax, {}, src_row_, weights_row_};
  }

  const IntegerTileConfig config_;
  const std::array<int, 2> rows_;  // of the halves
  SpilledSums spilled_;
  Xbyak::Label configuration_;
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

void ConfigureWholeTiles() {
  static constexpr WholeTiles kWholeTiles;
  asm volatile("ldtilecfg %0" ::"m"(kWholeTiles) : "memory");
}

void ReleaseMatrixTiles() { asm volatile("tilerelease" ::: "memory"); }

}  // namespace tilewire
