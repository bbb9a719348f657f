// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/direct/depthwise_nchw_generator.h"

#include <array>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/kernels/tiles/accumulator_epilogue.h"
#include "engine/primitives/convolution/direct/plane_tiling.h"
#include "engine/primitives/convolution/direct/tiling.h"

namespace tilewire::convolution {
namespace {

class DepthwiseNchwGenerator final : public jit::Generator {
 public:
  DepthwiseNchwGenerator(absl::string_view name, const DepthwiseNchwConfig& config)
      : Generator(name),
        config_(config),
        g_(config.geometry),
        unit_(config.unit),
        keeps_weights_(unit_.has_masks() && g_.kernel[1] * g_.kernel[2] <= kMostWeights) {
    const int kept = unit_.has_masks() ? kMostWeights + kIndices : 0;
    for (int i = kDepthwiseNchwRows; i < unit_.registers() - kept; ++i) scratch_.push_back(i);
  }

 private:
  // Vectors: sums of the rows, then scratch, with masks then weights and indices.
  static constexpr int kMostWeights = 16, kIndices = 2;
  static constexpr int kFirstMask = 3, kMasks = 5;  // the epilogue takes opmasks 1 and 2

  const Xbyak::Reg64 args_ = rdi;
  const Xbyak::Reg64 src_ = rsi, dst_ = rdx;  // of the tile; src: where tap 0 reads
  const Xbyak::Reg64 weights_ = rcx, bias_ = r8, slopes_ = r9;
  const Xbyak::Reg64 src_band_ = r10, dst_band_ = r11;
  const Xbyak::Reg64 bands_left_ = r12, columns_left_ = r13;
  const Xbyak::Reg64 src_plane_ = rbx, dst_plane_ = rbp, channels_left_ = r14;

  Xbyak::Xmm Sum(int row) const { return unit_.Vector(row); }
  Xbyak::Xmm Scratch(int i) const { return unit_.Vector(scratch_[i]); }
  Xbyak::Xmm Even() const { return Scratch(0); }  // and every pixel with stride 1
  Xbyak::Xmm Odd() const { return Scratch(1); }
  Xbyak::Xmm Second() const { return Scratch(2); }
  // Without masks:
  Xbyak::Xmm LaneMask() const { return Scratch(3); }
  Xbyak::Xmm Product() const { return Scratch(4); }
  Xbyak::Xmm OneWeight() const { return Scratch(5); }
  Xbyak::Xmm Weight(int64_t tap) const {
    return unit_.Vector(unit_.registers() - kMostWeights + static_cast<int>(tap));
  }
  Xbyak::Ymm Indices(int odd) const {
    return unit_.Wide(unit_.registers() - kMostWeights - kIndices + odd);
  }
  // Whether one instruction takes any lanes of two vectors.
  bool ByIndices() const { return g_.stride[2] == 2 && unit_.has_masks() && unit_.lanes() >= 8; }

  void Emit() override {
    Preamble();
    LoadArguments();
    Xbyak::Label channel;
    L(channel);
    EmitPlane();
    NextChannel();
    jnz(channel, T_NEAR);
    Postamble();
    EmitTables();
  }

  void LoadArguments() {
    mov(src_plane_, Argument(offsetof(DepthwiseNchwArgs, src)));
    AddBytes(src_plane_, -g_.pad[1] * config_.src_row_bytes - g_.pad[2] * kFloatBytes);
    mov(dst_plane_, Argument(offsetof(DepthwiseNchwArgs, dst)));
    mov(weights_, Argument(offsetof(DepthwiseNchwArgs, weights)));
    mov(bias_, Argument(offsetof(DepthwiseNchwArgs, bias)));
    mov(slopes_, Argument(offsetof(DepthwiseNchwArgs, slopes)));
    mov(channels_left_, Argument(offsetof(DepthwiseNchwArgs, channels)));
    if (!ByIndices()) return;
    for (int odd : {0, 1}) vmovups(Indices(odd), ptr[rip + index_tables_[odd]]);
  }
  Xbyak::Address Argument(size_t offset) { return ptr[args_ + static_cast<int>(offset)]; }

  void EmitPlane() {
    if (keeps_weights_) {
      for (int64_t tap = 0; tap < g_.kernel[1] * g_.kernel[2]; ++tap)
        vbroadcastss(Weight(tap), ptr[weights_ + static_cast<int>(tap * config_.tap_bytes)]);
    }
    mov(src_band_, src_plane_);
    mov(dst_band_, dst_plane_);
    const std::vector<PixelColumn> columns = CutIntoColumns(g_, unit_.lanes());
    for (const RowBand& band : CutIntoBands(g_, kDepthwiseNchwRows)) {
      Repeat(band.count, bands_left_, [&] { EmitBand(band, columns); });
    }
  }

  // Sets the zero flag after the last one. A tap's weights are those of a vector of channels.
  void NextChannel() {
    add(src_plane_, Argument(offsetof(DepthwiseNchwArgs, src_channel_bytes)));
    add(dst_plane_, Argument(offsetof(DepthwiseNchwArgs, dst_channel_bytes)));
    AddBytes(weights_, kFloatBytes);
    AddBytes(bias_, kFloatBytes);
    AddBytes(slopes_, config_.tap_bytes);
    dec(channels_left_);
  }

  void AddBytes(const Xbyak::Reg64& to, int64_t bytes) {
    if (bytes != 0) add(to, static_cast<int>(bytes));
  }

  template <typename Body>
  void Repeat(int64_t count, const Xbyak::Reg64& left, Body body) {
    Xbyak::Label again;
    if (count > 1) mov(left, count);
    L(again);
    body();
    if (count == 1) return;
    dec(left);
    jnz(again, T_NEAR);
  }

  void EmitBand(const RowBand& band, const std::vector<PixelColumn>& columns) {
    mov(src_, src_band_);
    mov(dst_, dst_band_);
    for (const PixelColumn& column : columns) {
      Repeat(column.count, columns_left_, [&] {
        EmitTile(band, column);
        AddBytes(src_, column.pixels * g_.stride[2] * kFloatBytes);
        AddBytes(dst_, column.pixels * kFloatBytes);
      });
    }
    AddBytes(src_band_, band.rows * g_.stride[1] * config_.src_row_bytes);
    AddBytes(dst_band_, band.rows * config_.dst_row_bytes);
  }

  void EmitTile(const RowBand& band, const PixelColumn& column) {
    masks_ = {};
    for (int row = 0; row < band.rows; ++row) unit_.Zero(this, Sum(row));
    for (int64_t row = band.inside.begin; row < band.inside.end; ++row) {
      for (int64_t tap = 0; tap < g_.kernel[2];) tap += EmitTaps(band, column, row, tap);
    }
    Finish(band.rows, column.pixels);
  }

  // One width tap of a row of src, or with stride 2 also the next one; returns how many.
  int EmitTaps(const RowBand& band, const PixelColumn& column, int64_t row, int64_t tap) {
    const bool pairs = g_.stride[2] == 2 && g_.tap_step[2] == 1 && tap + 1 < g_.kernel[2];
    const uint32_t lanes = TapLanes(column, tap), next = pairs ? TapLanes(column, tap + 1) : 0;
    if (!IsRead(band, row) || (lanes | next) == 0) return pairs ? 2 : 1;
    const int64_t pixel = tap * g_.tap_step[2];
    if (g_.stride[2] == 1) {
      LoadPixels(Even(), column, row, pixel);
    } else {
      LoadPixels(Odd(), column, row, pixel);
      LoadPixels(Second(), column, row, pixel + unit_.lanes());
      Separate(pairs);
    }
    MultiplyAdd(band, column, row, tap, Even(), lanes);
    if (pairs) MultiplyAdd(band, column, row, tap + 1, Odd(), next);
    return pairs ? 2 : 1;
  }

  uint32_t TapLanes(const PixelColumn& column, int64_t tap) const {
    return LanesInside(g_, column.first_src + tap * g_.tap_step[2], g_.stride[2], column.pixels);
  }
  uint32_t AllLanes(int lanes) const { return static_cast<uint32_t>((uint64_t{1} << lanes) - 1); }

  // The height tap as which row `row` of the tile reads `src_row`, or -1.
  int64_t HeightTap(int row, int64_t src_row) const {
    const int64_t distance = src_row - row * g_.stride[1], tap = distance / g_.tap_step[1];
    return distance < 0 || distance % g_.tap_step[1] != 0 || tap >= g_.kernel[1] ? -1 : tap;
  }
  bool IsRead(const RowBand& band, int64_t src_row) const {
    for (int row = 0; row < band.rows; ++row) {
      if (HeightTap(row, src_row) >= 0) return true;
    }
    return false;
  }

  // Neighbouring pixels of src from `pixel` on, counted from tap 0's of lane 0; zeros outside.
  void LoadPixels(const Xbyak::Xmm& to, const PixelColumn& column, int64_t row, int64_t pixel) {
    const int64_t offset = row * config_.src_row_bytes + pixel * kFloatBytes;
    const Xbyak::Address from = ptr[src_ + static_cast<int>(offset)];
    const uint32_t lanes = LanesInside(g_, column.first_src + pixel, 1, unit_.lanes());
    if (lanes == AllLanes(unit_.lanes())) {
      vmovups(to, from);
    } else if (lanes == 0) {
      unit_.Zero(this, to);
    } else if (unit_.has_masks()) {
      vmovups(to | MaskOf(lanes) | Xbyak::util::T_z, from);
    } else {
      vmovups(LaneMask(), ptr[rip + mask_tables_[lanes]]);
      vmaskmovps(to, LaneMask(), from);
    }
  }

  // Even = the even pixels of Odd and Second; if asked for, Odd = the odd ones.
  void Separate(bool odd) {
    if (ByIndices()) {
      vmovaps(Even(), Odd());
      vpermt2ps(Even(), Indices(0), Second());
      if (odd) vpermt2ps(Odd(), Indices(1), Second());
      return;
    }
    // Of two quarters each, which then change places.
    constexpr int kEven = 0x88, kOdd = 0xDD, kInOrder = 0xD8;
    vshufps(Even(), Odd(), Second(), kEven);
    if (odd) vshufps(Odd(), Odd(), Second(), kOdd);
    if (unit_.lanes() < 8) return;
    vpermpd(unit_.Wide(Even().getIdx()), unit_.Wide(Even().getIdx()), kInOrder);
    if (odd) vpermpd(unit_.Wide(Odd().getIdx()), unit_.Wide(Odd().getIdx()), kInOrder);
  }

  // The products of a width tap for all rows of the tile; `lanes` read it from inside src.
  void MultiplyAdd(const RowBand& band, const PixelColumn& column, int64_t src_row, int64_t tap,
                   const Xbyak::Xmm& pixels, uint32_t lanes) {
    if (lanes == 0) return;
    const bool all = lanes == AllLanes(column.pixels);
    if (!all && !unit_.has_masks()) vmovups(LaneMask(), ptr[rip + mask_tables_[lanes]]);
    for (int row = 0; row < band.rows; ++row) {
      const int64_t height_tap = HeightTap(row, src_row);
      if (height_tap < 0) continue;
      const int64_t weight = height_tap * g_.kernel[2] + tap;
      if (unit_.has_masks()) {
        const Xbyak::Xmm sum = all ? Sum(row) : Sum(row) | MaskOf(lanes);
        MultiplyAddWeight(sum, pixels, weight);
      } else if (all) {
        MultiplyAddWeight(Sum(row), pixels, weight);
      } else {
        vmovaps(Product(), Sum(row));
        MultiplyAddWeight(Product(), pixels, weight);
        vblendvps(Sum(row), Sum(row), Product(), LaneMask());
      }
    }
  }

  void MultiplyAddWeight(const Xbyak::Xmm& sum, const Xbyak::Xmm& pixels, int64_t weight) {
    const int offset = static_cast<int>(weight * config_.tap_bytes);
    if (keeps_weights_) {
      vfmadd231ps(sum, pixels, Weight(weight));
    } else if (unit_.has_masks()) {
      vfmadd231ps(sum, pixels, ptr_b[weights_ + offset]);
    } else {
      vbroadcastss(OneWeight(), ptr[weights_ + offset]);
      vfmadd231ps(sum, pixels, OneWeight());
    }
  }

  // The opmask register that holds `lanes` from here to the end of the tile, or until as many
  // others have been asked for as there are registers.
  Xbyak::Opmask MaskOf(uint32_t lanes) {
    for (int i = 0; i < kMasks; ++i) {
      if (masks_.held[i] == lanes) return Xbyak::Opmask(kFirstMask + i);
    }
    const int i = masks_.next++ % kMasks;
    masks_.held[i] = lanes;
    mov(eax, lanes);
    kmovw(Xbyak::Opmask(kFirstMask + i), eax);
    return Xbyak::Opmask(kFirstMask + i);
  }

  void Finish(int rows, int pixels) {
    if (config_.has_bias) {
      vbroadcastss(Scratch(0), ptr[bias_]);
      for (int row = 0; row < rows; ++row) vaddps(Sum(row), Sum(row), Scratch(0));
    }
    AccumulatorEpilogue& epilogue = EpilogueOf(rows, pixels);
    epilogue.ApplyPostOps(/*skip_sum=*/false);
    epilogue.Store();
  }

  // The end of a tile, whose pixels stand where other kernels have channels.
  AccumulatorEpilogue& EpilogueOf(int rows, int pixels) {
    std::unique_ptr<AccumulatorEpilogue>& epilogue = epilogues_[{rows, pixels}];
    if (epilogue == nullptr) {
      EpilogueConfig end{.unit = unit_, .pixels = rows, .post_ops = config_.post_ops};
      end.dst_pixel_bytes = config_.dst_row_bytes;
      end.tail_lanes = pixels % unit_.lanes();
      end.packed_channels = true;
      epilogue = std::make_unique<AccumulatorEpilogue>(
          this, end,
          AccumulatorEpilogue::Registers{
              .dst = dst_, .bias = bias_, .spare = rax, .scratch = scratch_, .slopes = slopes_});
    }
    return *epilogue;
  }

  void EmitTables() {
    for (auto& [tile, epilogue] : epilogues_) epilogue->EmitTables();
    for (auto& [lanes, label] : mask_tables_) {
      align(unit_.bytes());
      L(label);
      for (int lane = 0; lane < unit_.lanes(); ++lane) dd((lanes >> lane & 1) != 0 ? ~0u : 0u);
    }
    for (int odd : {0, 1}) {
      if (!ByIndices()) break;
      align(unit_.bytes());
      L(index_tables_[odd]);
      for (int lane = 0; lane < unit_.lanes(); ++lane) dd(2 * lane + odd);
    }
  }

  const DepthwiseNchwConfig config_;
  const Geometry& g_;
  const VectorUnit unit_;
  const bool keeps_weights_;  // in registers; else they are read from memory for each product
  std::vector<int> scratch_;
  struct {
    std::array<uint32_t, kMasks> held{};
    int next = 0;
  } masks_;
  std::map<std::pair<int, int>, std::unique_ptr<AccumulatorEpilogue>> epilogues_;
  std::map<uint32_t, Xbyak::Label> mask_tables_;
  std::array<Xbyak::Label, 2> index_tables_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const jit::Generator>> GenerateDepthwiseNchw(
    absl::string_view name, const DepthwiseNchwConfig& config) {
  ABSL_ASSIGN_OR_RETURN(std::unique_ptr<const jit::Generator> generator,
                        jit::Compile<DepthwiseNchwGenerator>(name, config));
  return generator;
}

}  // namespace tilewire::convolution
