// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/jit/vector_unit.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/driven_primitive.h"
#include "engine/primitives/reorder/channel_blocking.h"
#include "engine/primitives/reorder/implementations.h"
#include "engine/primitives/reorder/winograd_weights_generator.h"

namespace tilewire::reorder {
namespace {

constexpr int64_t kWindowTaps = 9;
constexpr int64_t kLargestBlock = 16;        // output channels
constexpr int64_t kInputsAtOnce = 16;        // input channels
constexpr int64_t kStreamedBytes = 1 << 20;  // a larger dst would drive everything from the caches

// How src holds the taps of channels: as oihw; those of neighbouring output channels together, in
// whole blocks of the lanes (Oihw8o, Oihw16o); or squares of both channels, of which the last may
// be padded (OIhw8i8o, OIhw16i16o).
enum class Taps { kPlain, kLanes, kSquares, kOther };

Taps TapsOf(const MemoryDesc& src, int64_t lanes) {
  const InnerBlocks& blocks = src.inner_blocks();
  const auto are_dense = [&src](int64_t tap) {
    return src.stride(3) == tap && src.stride(2) == 3 * tap &&
           (src.dim(1) == 1 || src.stride(1) == kWindowTaps * tap);
  };
  if (src.IsPlain() && are_dense(1)) return Taps::kPlain;
  if (blocks == InnerBlocks{{0, lanes}} && src.dim(0) % lanes == 0 && are_dense(lanes))
    return Taps::kLanes;
  if (blocks == InnerBlocks{{1, lanes}, {0, lanes}} && are_dense(lanes * lanes))
    return Taps::kSquares;
  return Taps::kOther;
}

struct WinogradDriver {
  void Run(const DrivenRun& run) const {
    const auto* src = run.First<const float>(kArgSrc);
    auto* dst = run.First<float>(kArgDst);
    const int64_t pieces = DivUp(layout.PaddedInputs(ic), kInputsAtOnce);
    run.team.ParallelFor(layout.Blocks(oc) * pieces, [&](int64_t item) {
      TransformBlock(src, dst, item / pieces, item % pieces * kInputsAtOnce);
    });
  }
  size_t code_bytes() const {
    size_t bytes = transform->code_bytes();
    for (const auto* kernel : {transpose.get(), transpose_tail.get()})
      bytes += kernel == nullptr ? 0 : kernel->code_bytes();
    return bytes;
  }

  // Input channels from `first` on of one block of output channels.
  void TransformBlock(const float* src, float* dst, int64_t block, int64_t first) const {
    alignas(64) float taps[kInputsAtOnce * kWindowTaps * kLargestBlock];
    alignas(64) double half[6 * 3 * kLargestBlock];
    const int64_t inputs = std::min(kInputsAtOnce, layout.PaddedInputs(ic) - first);
    const int64_t channels = std::clamp<int64_t>(ic - first, 0, inputs);
    const float* in_lanes = taps;
    if (taps_are == Taps::kPlain) {
      Transpose(src + block * layout.lanes * oc_stride + first * kWindowTaps, block, channels,
                taps);
    } else if (taps_are == Taps::kSquares) {
      CopySquares(src + block * oc_stride, first, channels, taps);
    } else {
      in_lanes = src + block * oc_stride + first * kWindowTaps * layout.lanes;
      if (channels < inputs) in_lanes = WithZeros(in_lanes, channels, taps);
    }
    const int64_t panel = block / layout.panel_blocks;
    const int64_t width = layout.BlocksOfPanel(oc, panel) * layout.lanes;
    constexpr int64_t kFloat = sizeof(float);
    WinogradWeightsArgs args;
    args.taps = in_lanes;
    args.half = half;
    args.dst = dst + layout.MatrixOffset(oc, ic, panel, 0) + first * width +
               block % layout.panel_blocks * layout.lanes;
    args.point_bytes = layout.PaddedInputs(ic) * width * kFloat;
    args.input_bytes = width * kFloat;
    args.inputs = inputs;
    args.streams = streams && reinterpret_cast<uintptr_t>(dst) % (layout.lanes * kFloat) == 0;
    transform->entry<void (*)(const WinogradWeightsArgs*)>()(&args);
  }

  // `inputs` channels of a block in squares, from the channel `first` on, and zeros for the rest of
  // taps.
  void CopySquares(const float* src, int64_t first, int64_t inputs, float* taps) const {
    const int64_t square = int64_t{layout.lanes} * layout.lanes;
    for (int64_t i = first; i < first + inputs; ++i) {
      const float* from = src + i / layout.lanes * ic_stride + i % layout.lanes * layout.lanes;
      for (int64_t tap = 0; tap < kWindowTaps; ++tap, from += square, taps += layout.lanes)
        std::copy_n(from, layout.lanes, taps);
    }
    std::fill_n(taps, (kInputsAtOnce - inputs) * kWindowTaps * layout.lanes, 0.0f);
  }

  // A copy of `inputs` channels in lanes, and zeros for the rest of taps.
  const float* WithZeros(const float* in_lanes, int64_t inputs, float* taps) const {
    const int64_t floats = inputs * kWindowTaps * layout.lanes;
    std::copy(in_lanes, in_lanes + floats, taps);
    std::fill(taps + floats, taps + kInputsAtOnce * kWindowTaps * layout.lanes, 0.0f);
    return taps;
  }

  // `inputs` channels, and zeros for the rest of taps.
  void Transpose(const float* src, int64_t block, int64_t inputs, float* taps) const {
    const int64_t elements = inputs * kWindowTaps;
    std::fill(taps + elements * layout.lanes, taps + kInputsAtOnce * kWindowTaps * layout.lanes,
              0.0f);
    if (elements == 0) return;
    ChannelBlockingArgs args = {};
    args.src = reinterpret_cast<const std::byte*>(src);
    args.dst = reinterpret_cast<std::byte*>(taps);
    args.src_step = oc_stride * static_cast<int64_t>(sizeof(float));
    args.dst_step = layout.lanes * static_cast<int64_t>(sizeof(float));
    args.pixels = elements;
    const bool full = (block + 1) * layout.lanes <= oc;
    (full ? transpose : transpose_tail)->entry<void (*)(const ChannelBlockingArgs*)>()(&args);
  }

  WinogradLayout layout;
  int64_t oc, ic, oc_stride, ic_stride;  // of blocks where src has them
  bool streams;
  Taps taps_are;
  std::unique_ptr<const jit::Generator> transpose, transpose_tail;  // null where not needed
  std::unique_ptr<const WinogradWeightsGenerator> transform;
};

absl::StatusOr<std::unique_ptr<const jit::Generator>> CompileTranspose(cpu::Isa isa, int lanes,
                                                                       int channels) {
  ChannelBlockingConfig config;
  config.transposes = config.to_lanes = true;
  config.channels = channels;
  config.readable = config.stored = lanes;
  return CompileChannelBlocking(isa, config);
}

}  // namespace

absl::StatusOr<ReorderDesc> ResolveGeneratedWinograd(const Request<ReorderDesc>& request) {
  const ReorderDesc& desc = request.desc;
  ABSL_RETURN_IF_ERROR(ResolveWinogradWeights(request).status());
  const int lanes = VectorUnit::Of(request.facts.isa).lanes();
  if (desc.dst.winograd().lanes != lanes) {
    return Unimplemented("dst has no vectors of ", lanes);
  }
  if (TapsOf(desc.src, lanes) == Taps::kOther)
    return Unimplemented("src holds the taps of channels neither as oihw nor in lanes or squares");
  return desc;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateGeneratedWinograd(
    const Request<ReorderDesc>& request) {
  const ReorderDesc& desc = request.desc;
  const WinogradLayout& layout = desc.dst.winograd();
  const int64_t oc = desc.src.dim(0), tail = oc % layout.lanes;
  WinogradDriver driver = {.layout = layout,
                           .oc = oc,
                           .ic = desc.src.dim(1),
                           .oc_stride = desc.src.stride(0),
                           .ic_stride = desc.src.stride(1),
                           .streams = desc.dst.SizeBytes() > kStreamedBytes,
                           .taps_are = TapsOf(desc.src, layout.lanes)};
  const bool transposes = driver.taps_are == Taps::kPlain;
  if (transposes && oc >= layout.lanes) {
    ABSL_ASSIGN_OR_RETURN(driver.transpose,
                          CompileTranspose(request.facts.isa, layout.lanes, layout.lanes));
  }
  if (transposes && tail != 0) {
    ABSL_ASSIGN_OR_RETURN(driver.transpose_tail, CompileTranspose(request.facts.isa, layout.lanes,
                                                                  static_cast<int>(tail)));
  }
  ABSL_ASSIGN_OR_RETURN(driver.transform,
                        jit::Compile<WinogradWeightsGenerator>(
                            request.facts.name, VectorUnit::Of(request.facts.isa), layout.tile));
  return MakeDriven(InfoOf(request), std::move(driver));
}

}  // namespace tilewire::reorder
