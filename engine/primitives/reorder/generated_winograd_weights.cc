// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/jit/vector_unit.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reorder/channel_blocking.h"
#include "engine/primitives/reorder/implementations.h"
#include "engine/primitives/reorder/winograd_weights_generator.h"
#include "engine/primitives/single_source.h"

namespace tilewire::reorder {
namespace {

constexpr int64_t kWindowTaps = 9;
constexpr int64_t kLargestBlock = 16;        // output channels
constexpr int64_t kInputsAtOnce = 16;        // input channels
constexpr int64_t kStreamedBytes = 1 << 20;  // a larger dst would drive everything from the caches

struct WinogradKernels {
  std::unique_ptr<const jit::Generator> transpose, transpose_tail;  // null where not needed
  std::unique_ptr<const WinogradWeightsGenerator> transform;
};

// Immutable.
class GeneratedWinograd final : public SingleSource<float> {
 public:
  GeneratedWinograd(PrimitiveInfo info, const ReorderDesc& desc, WinogradKernels kernels)
      : SingleSource(std::move(info)),
        layout_(desc.dst.winograd()),
        oc_(desc.src.dim(0)),
        ic_(desc.src.dim(1)),
        oc_stride_(desc.src.stride(0)),
        streams_(desc.dst.SizeBytes() > kStreamedBytes),
        kernels_(std::move(kernels)) {}

 private:
  void RunOn(const float* src, float* dst, const threading::Team& team) const override {
    const int64_t pieces = DivUp(layout_.PaddedInputs(ic_), kInputsAtOnce);
    team.ParallelFor(layout_.Blocks(oc_) * pieces, [&](int64_t item) {
      TransformBlock(src, dst, item / pieces, item % pieces * kInputsAtOnce);
    });
  }

  // Input channels from `first` on of one block of output channels.
  void TransformBlock(const float* src, float* dst, int64_t block, int64_t first) const {
    alignas(64) float taps[kInputsAtOnce * kWindowTaps * kLargestBlock];
    alignas(64) double half[6 * 3 * kLargestBlock];
    const int64_t inputs = std::min(kInputsAtOnce, layout_.PaddedInputs(ic_) - first);
    Transpose(src + block * layout_.lanes * oc_stride_ + first * kWindowTaps, block,
              std::clamp<int64_t>(ic_ - first, 0, inputs), taps);
    const int64_t panel = block / layout_.panel_blocks;
    const int64_t width = layout_.BlocksOfPanel(oc_, panel) * layout_.lanes;
    constexpr int64_t kFloat = sizeof(float);
    WinogradWeightsArgs args;
    args.taps = taps;
    args.half = half;
    args.dst = dst + layout_.MatrixOffset(oc_, ic_, panel, 0) + first * width +
               block % layout_.panel_blocks * layout_.lanes;
    args.point_bytes = layout_.PaddedInputs(ic_) * width * kFloat;
    args.input_bytes = width * kFloat;
    args.inputs = inputs;
    args.streams = streams_ && reinterpret_cast<uintptr_t>(dst) % (layout_.lanes * kFloat) == 0;
    kernels_.transform->entry<void (*)(const WinogradWeightsArgs*)>()(&args);
  }

  // `inputs` channels, and zeros for the rest of taps.
  void Transpose(const float* src, int64_t block, int64_t inputs, float* taps) const {
    const int64_t elements = inputs * kWindowTaps;
    std::fill(taps + elements * layout_.lanes, taps + kInputsAtOnce * kWindowTaps * layout_.lanes,
              0.0f);
    if (elements == 0) return;
    ChannelBlockingArgs args = {};
    args.src = reinterpret_cast<const std::byte*>(src);
    args.dst = reinterpret_cast<std::byte*>(taps);
    args.src_step = oc_stride_ * static_cast<int64_t>(sizeof(float));
    args.dst_step = layout_.lanes * static_cast<int64_t>(sizeof(float));
    args.pixels = elements;
    const bool full = (block + 1) * layout_.lanes <= oc_;
    (full ? kernels_.transpose : kernels_.transpose_tail)
        ->entry<void (*)(const ChannelBlockingArgs*)>()(&args);
  }

  const WinogradLayout layout_;
  const int64_t oc_, ic_, oc_stride_;
  const bool streams_;
  const WinogradKernels kernels_;
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
  const MemoryDesc& src = desc.src;
  const bool dense = src.IsPlain() && src.stride(3) == 1 && src.stride(2) == 3 &&
                     (src.dim(1) == 1 || src.stride(1) == kWindowTaps);
  if (!dense) return Unimplemented("src does not hold the taps of channels as oihw");
  return desc;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateGeneratedWinograd(
    const Request<ReorderDesc>& request) {
  const ReorderDesc& desc = request.desc;
  PrimitiveInfo info = InfoOf(request);
  const WinogradLayout& layout = desc.dst.winograd();
  const int64_t oc = desc.src.dim(0), tail = oc % layout.lanes;
  WinogradKernels kernels;
  if (oc >= layout.lanes) {
    ABSL_ASSIGN_OR_RETURN(kernels.transpose,
                          CompileTranspose(request.facts.isa, layout.lanes, layout.lanes));
    info.code_bytes += static_cast<int64_t>(kernels.transpose->code_bytes());
  }
  if (tail != 0) {
    ABSL_ASSIGN_OR_RETURN(kernels.transpose_tail, CompileTranspose(request.facts.isa, layout.lanes,
                                                                   static_cast<int>(tail)));
    info.code_bytes += static_cast<int64_t>(kernels.transpose_tail->code_bytes());
  }
  ABSL_ASSIGN_OR_RETURN(kernels.transform,
                        jit::Compile<WinogradWeightsGenerator>(
                            request.facts.name, VectorUnit::Of(request.facts.isa), layout.tile));
  info.code_bytes += static_cast<int64_t>(kernels.transform->code_bytes());
  return std::make_unique<GeneratedWinograd>(std::move(info), desc, std::move(kernels));
}

}  // namespace tilewire::reorder
