// SPDX-License-Identifier: Apache-2.0
//
// f32 weights in any layout -> planes of bf16 (plane_layout.h), also of Winograd's transform of
// them (winograd_layout.h): the best reorder to the f32 layout that is split, which the scratchpad
// holds, and the split of each group of outputs.
#include "engine/kernels/planes/plane_weights.h"

#include <algorithm>
#include <utility>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reorder/implementations.h"

namespace tilewire::reorder {
namespace {

constexpr int64_t kBlockLineBytes = kPlaneLanes * sizeof(float);  // of a channel's 16 outputs
constexpr int64_t kCopyAlignment = 64;

PlaneLayout PlanesOf(const MemoryDesc& desc) {
  if (desc.format_kind() == FormatKind::kPlanes) return desc.planes();
  return desc.winograd().Planes(desc.dim(0), desc.dim(1));
}

// Immutable. A task is one group of outputs.
class SplitToPlanes final : public Primitive {
 public:
  SplitToPlanes(PrimitiveInfo info, const ReorderDesc& desc, std::shared_ptr<const Primitive> copy,
                std::unique_ptr<const PlaneSplit> split)
      : Primitive(std::move(info)),
        layout_(PlanesOf(desc.dst)),
        winograd_(desc.dst.winograd()),
        copy_bytes_(RoundUp(desc.dst.Unsplit().SizeBytes(), kCopyAlignment)),
        copy_(std::move(copy)),
        split_(std::move(split)) {}

 private:
  void Run(const ExecuteArgs& args, std::byte* scratchpad,
           const threading::Team& team) const override {
    ExecuteArgs copy_args = args;
    copy_args.Set(kArgDst, scratchpad).Set(kArgScratchpad, scratchpad + copy_bytes_);
    (void)copy_->Execute(copy_args, team);  // has all its arguments, and so cannot fail
    auto* const dst = args.Get<std::byte>(kArgDst);
    team.ParallelFor(layout_.matrices * layout_.Groups(), [&](int64_t group) {
      dst[layout_.BeyondOffset() + group] =
          std::byte{SplitGroup(scratchpad, group, dst + layout_.GroupOffset(group))};
    });
  }

  WeightsBlock BlockOf(const std::byte* numbers, int64_t matrix, int64_t block) const {
    return winograd_.planes > 0 ? BlockOfWinograd(numbers, matrix, block)
                                : BlockOfWeights(numbers, matrix, block);
  }

  // The numbers lie as [matrix][16 outputs][16 channels][tap][channel of 16][output of 16].
  WeightsBlock BlockOfWeights(const std::byte* numbers, int64_t matrix, int64_t block) const {
    const int64_t block_bytes = layout_.channels * layout_.taps * kBlockLineBytes;
    return {.begin = numbers + (matrix * layout_.Blocks() + block) * block_bytes,
            .channel = kBlockLineBytes,
            .block = layout_.taps * kPlaneLanes * kBlockLineBytes,
            .tap = kPlaneLanes * kBlockLineBytes};
  }

  // The numbers lie as [panel][point][channel][16 outputs of the panel][output of 16].
  WeightsBlock BlockOfWinograd(const std::byte* numbers, int64_t point, int64_t block) const {
    const int64_t panel = block / kPlaneBlocks, ic = layout_.channels;
    const int64_t matrix = winograd_.MatrixOffset(layout_.outputs, ic, panel, point);
    const int64_t channel = winograd_.BlocksOfPanel(layout_.outputs, panel) * kBlockLineBytes;
    return {.begin = numbers + matrix * static_cast<int64_t>(sizeof(float)) +
                     block % kPlaneBlocks * kBlockLineBytes,
            .channel = channel,
            .block = kPlaneLanes * channel,
            .tap = 0};
  }

  // Returns whether some number is beyond planes. The lines of a block that is none are zeros.
  bool SplitGroup(const std::byte* numbers, int64_t group, std::byte* to) const {
    const int64_t matrix = group / layout_.Groups();
    const int64_t first = group % layout_.Groups() * kPlaneBlocks;
    bool beyond = false;
    if (first + kPlaneBlocks > layout_.Blocks())
      std::fill_n(to, layout_.GroupBytes(), std::byte{0});
    for (int64_t i = 0; i < kPlaneBlocks && first + i < layout_.Blocks(); ++i) {
      const WeightsBlock block = BlockOf(numbers, matrix, first + i);
      std::byte* const lines = to + i * kPlaneBlockBytes;
      if (!SplitWeights(*split_, layout_, block, lines)) continue;
      HoldBeyond(layout_, block, lines);
      beyond = true;
    }
    return beyond;
  }

  const PlaneLayout layout_;
  const WinogradLayout winograd_;
  const int64_t copy_bytes_;
  const std::shared_ptr<const Primitive> copy_;
  const std::unique_ptr<const PlaneSplit> split_;
};

}  // namespace

absl::StatusOr<ReorderDesc> ResolvePlaneWeights(const Request<ReorderDesc>& request) {
  const ReorderDesc& desc = request.desc;
  if (desc.src.format_kind() != FormatKind::kBlocked ||
      (desc.dst.format_kind() != FormatKind::kPlanes && desc.dst.winograd().planes == 0)) {
    return Unimplemented("writes planes of weights only");
  }
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src));
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(request.attributes));
  return desc;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreatePlaneWeights(const Request<ReorderDesc>& request) {
  const ReorderDesc& desc = request.desc;
  Attributes copy_attributes = request.attributes;
  copy_attributes.scratchpad_mode = ScratchpadMode::kUser;
  const MemoryDesc numbers = desc.dst.Unsplit();
  ABSL_ASSIGN_OR_RETURN(std::shared_ptr<const Primitive> copy,
                        CreateReorder({.src = desc.src, .dst = numbers}, copy_attributes, {}));
  ABSL_ASSIGN_OR_RETURN(auto split,
                        jit::Compile<PlaneSplit>(request.facts.name, PlanesOf(desc.dst).planes));
  PrimitiveInfo info = InfoOf(request);
  info.scratchpad_bytes =
      RoundUp(numbers.SizeBytes(), kCopyAlignment) + copy->info().scratchpad_bytes;
  info.code_bytes = copy->info().code_bytes + static_cast<int64_t>(split->code_bytes());
  return std::make_unique<SplitToPlanes>(std::move(info), desc, std::move(copy), std::move(split));
}

}  // namespace tilewire::reorder
