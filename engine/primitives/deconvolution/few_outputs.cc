// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <string>

#include "engine/base/check.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/jit/tail_mask.h"
#include "engine/kernels/elements/lane_sums.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/deconvolution/direct_driver.h"
#include "engine/primitives/deconvolution/geometry.h"
#include "engine/primitives/deconvolution/implementations.h"
#include "engine/primitives/deconvolution/tile_loop.h"

namespace tilewire::deconvolution {
namespace {

// Tiles of a dst with few channels: as many outputs of a row, `stride` apart, as a vector has
// lanes, of one output channel (tile_loop.h). The lanes of its sums are input channels, which are
// added up in the end (lane_sums.h), and the outputs are stored in a plain row.
//
// Where each output of a row has a tap of its own, a tile holds all phases of its pixels of src,
// which are neighbours in dst; where the same is true of pairs of rows, a tile holds both rows, so
// that src is read once. The sums of a pair come in two batches, each of half the pixels, whose
// halves are those of either row.
struct FewOutputsConfig {
  VectorUnit unit;
  int pixels = 1;   // of src, or outputs that are apart: times the columns at most the lanes
  int columns = 1;  // neighbouring outputs of a pixel
  int rows = 1;     // 1 or 2; times the columns at most kMostPhases
  TileLoopConfig loop;
  int64_t src_row_bytes = 0;
  int64_t dst_pixel_bytes = 4, dst_row_bytes = 0;  // from output to output, from row to row
  bool bias = false;
  PostOps post_ops;  // without sum if the outputs are apart
};

constexpr int64_t kFarthestRow = 1 << 30;  // in bytes, that a displacement reaches

// The end of vectors 0 to rows - 1, each a row of the tile.
EpilogueConfig EpilogueOf(const FewOutputsConfig& config) {
  EpilogueConfig epilogue =
      EpilogueOfLaneSums(config.unit, config.pixels * config.columns, config.post_ops);
  epilogue.pixels = config.rows;
  epilogue.dst_pixel_bytes = config.dst_row_bytes;
  return epilogue;
}

class FewOutputsGenerator final : public TileLoop {
 public:
  // The phases of an output channel; the weights of each follow those of the one before.
  static constexpr int kMostPhases = 4;
  FewOutputsGenerator(absl::string_view name, const FewOutputsConfig& config)
      : TileLoop(name, EpilogueOf(config), config.loop),
        config_(config),
        tail_(this, config.unit,
              {.spare = rax, .opmask = k3, .vector = config.unit.registers() - 1}) {
    TILEWIRE_CHECK(config.rows <= 2 && config.rows * config.columns <= kMostPhases &&
                       config.pixels * config.columns <= config.unit.lanes(),
                   "a register for each phase, and a lane for each output of a row");
  }

 private:
  void EmitTile() override {
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

  // Memory after the last channel of src may be anything. Where tiles hold one row, the next row of
  // src is asked for in time: the phases along the height read this one again.
  void EmitBlock(int channels) override {
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

  void EmitTables() override {
    epilogue_.EmitTables();
    if (config_.loop.tail_channels > 0) tail_.EmitTable();
  }

  // Vector 0 = the outputs of a batch.
  void SumBatch(int batch) {
    batch_ = batch;
    for (int i = 0; i < config_.unit.lanes(); ++i) config_.unit.Zero(this, Vector(i));
    EmitTaps(batch * PixelsOfBatch());
    EmitLaneSums(this, config_.unit, Spare(0));
  }

  // Vectors 0 and 1 = the lower halves of both batches, and the upper ones.
  void JoinBatches() {
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

  void AddBias() {
    vbroadcastss(Spare(0), ptr[bias_]);
    for (int r = 0; r < config_.rows; ++r) vaddps(Vector(r), Vector(r), Spare(0));
  }

  // Vector 0 is stored four lanes at a time, which move to the lowest first.
  void StoreApart() {
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

  int PixelsOfBatch() const { return config_.unit.lanes() / (config_.columns * config_.rows); }
  Xbyak::Xmm Spare(int i) const { return Vector(config_.unit.lanes() + i); }
  Xbyak::Xmm FirstBatch() const { return Spare(kMostPhases + 1); }

  // Vectors: a sum for each output, then weights, then an element of src, then the first batch.
  const FewOutputsConfig config_;
  jit::TailMask tail_;
  int batch_ = 0;  // being emitted
};

constexpr int64_t kOutputBytes = sizeof(float);

absl::Status RequireFewOutputs(const Geometry& geometry, int64_t lanes) {
  constexpr int64_t kFewestVectors = 4;
  if (geometry.grouped_weights || geometry.ic < lanes || geometry.oc > lanes ||
      WorkOf(geometry).outputs < static_cast<double>(kFewestVectors * lanes)) {
    return Unimplemented("is for few output channels of many pixels, without groups");
  }
  return absl::OkStatus();
}

// Whether each output has one tap, and all of a pixel lie side by side.
bool SpreadsPixels(const Axis& axis) {
  return axis.stride == axis.kernel && axis.tap_step == 1 && axis.pad == 0 &&
         axis.out == axis.in * axis.stride;
}

// The phases along the width and the height that a tile holds.
struct Phases {
  int64_t columns = 1, rows = 1;
};

Phases PhasesOf(const Geometry& geometry) {
  constexpr int64_t kMost = FewOutputsGenerator::kMostPhases, kFarthestRow = int64_t{1} << 28;
  const Axis &height = geometry.axes[1], &width = geometry.axes[2];
  Phases phases;
  if (!SpreadsPixels(width) || width.stride > kMost) return phases;
  phases.columns = width.stride;
  if (SpreadsPixels(height) && height.stride == 2 && 2 * phases.columns <= kMost &&
      height.dst_stride < kFarthestRow)
    phases.rows = 2;
  return phases;
}

FewOutputsConfig FewOutputsConfigOf(const DeconvolutionDesc& desc, const PostOps& post_ops,
                                    const VectorUnit& unit, int64_t pixels) {
  const Geometry geometry = GeometryOf(desc);
  const Phases phases = PhasesOf(geometry);
  const int64_t dst_pixel_bytes = geometry.axes[2].stride / phases.columns * kOutputBytes;
  return {.unit = unit,
          .pixels = static_cast<int>(pixels),
          .columns = static_cast<int>(phases.columns),
          .rows = static_cast<int>(phases.rows),
          .loop = {.ic_blocks = geometry.ic / unit.lanes(),
                   .tail_channels = static_cast<int>(geometry.ic % unit.lanes()),
                   .src_block_bytes = desc.src.stride(1) * kOutputBytes,
                   .weights_block_bytes = desc.weights.stride(1) * kOutputBytes,
                   .src_tile_bytes = pixels * unit.bytes(),
                   .dst_tile_bytes = pixels * phases.columns * dst_pixel_bytes},
          .src_row_bytes = geometry.axes[1].src_stride * kOutputBytes,
          .dst_pixel_bytes = dst_pixel_bytes,
          .dst_row_bytes = geometry.axes[1].dst_stride * kOutputBytes,
          .bias = !desc.bias.IsZero(),
          .post_ops = post_ops};
}

}  // namespace

absl::StatusOr<DeconvolutionDesc> ResolveFewOutputs(const Request<DeconvolutionDesc>& request) {
  const DeconvolutionDesc& desc = request.desc;
  ABSL_RETURN_IF_ERROR(RequireForwardF32(desc, request.attributes));
  const int64_t lanes = VectorUnit::Of(request.facts.isa).lanes();
  const Geometry geometry = GeometryOf(desc);
  ABSL_RETURN_IF_ERROR(RequireFewOutputs(geometry, lanes));
  if (request.attributes.post_ops.HasSum() && geometry.axes[2].stride > PhasesOf(geometry).columns)
    return Unimplemented("takes no sum of outputs that are apart");
  const int rank = desc.src.rank();
  ABSL_ASSIGN_OR_RETURN(const DeconvolutionDesc resolved,
                        ResolveTiles(desc, {.lanes = lanes,
                                            .dst = std::string(PlainPattern(rank)),
                                            .weights = BlockedPattern(rank, lanes)}));
  const int width = rank - 1;
  if (!resolved.dst.IsPlain() || (resolved.dst.dim(width) > 1 && resolved.dst.stride(width) != 1)) {
    return Unimplemented("takes plain rows of dst, not ", resolved.dst.ToString());
  }
  return resolved;
}

// Steps of an FMA: an output takes one for each tap and block of input channels, and a few to add
// up its lanes.
double CostFewOutputs(const Request<DeconvolutionDesc>& resolved) {
  constexpr double kLaneSums = 4;
  const Geometry geometry = GeometryOf(resolved.desc);
  const VectorUnit unit = VectorUnit::Of(resolved.facts.isa);
  const auto [outputs, taps] = WorkOf(geometry);
  const double blocks = static_cast<double>(DivUp(geometry.ic, int64_t{unit.lanes()}));
  return static_cast<double>(geometry.oc) * outputs * (blocks * taps + kLaneSums) /
         resolved.machine.FmasPerCycle(unit.bytes());
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateFewOutputs(
    const Request<DeconvolutionDesc>& request) {
  const DeconvolutionDesc& desc = request.desc;
  const VectorUnit unit = VectorUnit::Of(request.facts.isa);
  const Phases phases = PhasesOf(GeometryOf(desc));
  const Blocking blocking = {.src_lanes = unit.lanes(),
                             .dst_lanes = 1,
                             .tile_blocks = 1,
                             .tile_pixels = unit.lanes() / phases.columns,
                             .merges_columns = phases.columns > 1,
                             .merges_rows = phases.rows > 1,
                             .phase_by_phase = false};
  return CreateDriver(InfoOf(request), desc, blocking, [&](const TileShape& tile) {
    return jit::Compile<FewOutputsGenerator>(
        request.facts.name,
        FewOutputsConfigOf(desc, request.attributes.post_ops, unit, tile.pixels));
  });
}

}  // namespace tilewire::deconvolution
