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
#include "engine/primitives/driven_primitive.h"
#include "engine/primitives/reorder/implementations.h"

namespace tilewire::reorder {
namespace {

constexpr int64_t kBlockLineBytes = kPlaneLanes * sizeof(float);  // of a channel's 16 outputs
constexpr int64_t kCopyAlignment = 64;

PlaneLayout PlanesOf(const MemoryDesc& desc) {
  if (desc.format_kind() == FormatKind::kPlanes) return desc.planes();
  return desc.winograd().Planes(desc.dim(0), desc.dim(1));
}

// A task is one group of outputs.
struct SplitDriver {
  void Run(const DrivenRun& run) const {
    ExecuteArgs copy_args = run.args;
    copy_args.Set(kArgDst, run.scratchpad).Set(kArgScratchpad, run.scratchpad + copy_bytes);
    (void)copy->Execute(copy_args, run.team);  // has all its arguments, and so cannot fail
    auto* const dst = run.args.Get<std::byte>(kArgDst);
    run.team.ParallelFor(layout.matrices * layout.Groups(), [&](int64_t group) {
      dst[layout.BeyondOffset() + group] =
          std::byte{SplitGroup(run.scratchpad, group, dst + layout.GroupOffset(group))};
    });
  }
  int64_t code_bytes() const {
    return copy->info().code_bytes + static_cast<int64_t>(split->code_bytes());
  }

  WeightsBlock BlockOf(const std::byte* numbers, int64_t matrix, int64_t block) const {
    return winograd.planes > 0 ? BlockOfWinograd(numbers, matrix, block)
                               : BlockOfWeights(numbers, matrix, block);
  }

  // The numbers lie as [matrix][16 outputs][16 channels][tap][channel of 16][output of 16].
  WeightsBlock BlockOfWeights(const std::byte* numbers, int64_t matrix, int64_t block) const {
    const int64_t block_bytes = layout.channels * layout.taps * kBlockLineBytes;
    return {.begin = numbers + (matrix * layout.Blocks() + block) * block_bytes,
            .channel = kBlockLineBytes,
            .block = layout.taps * kPlaneLanes * kBlockLineBytes,
            .tap = kPlaneLanes * kBlockLineBytes};
  }

  // The numbers lie as [panel][point][channel][16 outputs of the panel][output of 16].
  WeightsBlock BlockOfWinograd(const std::byte* numbers, int64_t point, int64_t block) const {
    const int64_t panel = block / kPlaneBlocks, ic = layout.channels;
    const int64_t matrix = winograd.MatrixOffset(layout.outputs, ic, panel, point);
    const int64_t channel = winograd.BlocksOfPanel(layout.outputs, panel) * kBlockLineBytes;
    return {.begin = numbers + matrix * static_cast<int64_t>(sizeof(float)) +
                     block % kPlaneBlocks * kBlockLineBytes,
            .channel = channel,
            .block = kPlaneLanes * channel,
            .tap = 0};
  }

  // Returns whether some number is beyond planes. The lines of a block that is none are zeros.
  bool SplitGroup(const std::byte* numbers, int64_t group, std::byte* to) const {
    const int64_t matrix = group / layout.Groups();
    const int64_t first = group % layout.Groups() * kPlaneBlocks;
    bool beyond = false;
    if (first + kPlaneBlocks > layout.Blocks()) std::fill_n(to, layout.GroupBytes(), std::byte{0});
    for (int64_t i = 0; i < kPlaneBlocks && first + i < layout.Blocks(); ++i) {
      const WeightsBlock block = BlockOf(numbers, matrix, first + i);
      std::byte* const lines = to + i * kPlaneBlockBytes;
      if (!SplitWeights(*split, layout, block, lines)) continue;
      HoldBeyond(layout, block, lines);
      beyond = true;
    }
    return beyond;
  }

  PlaneLayout layout;
  WinogradLayout winograd;
  int64_t copy_bytes;
  std::shared_ptr<const Primitive> copy;
  std::unique_ptr<const PlaneSplit> split;
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
  const MemoryDesc numbers = desc.dst.Unsplit();
  const PlaneLayout layout = PlanesOf(desc.dst);
  const int64_t copy_bytes = RoundUp(numbers.SizeBytes(), kCopyAlignment);
  ABSL_ASSIGN_OR_RETURN(auto copy, CreateCopyInside(request, numbers));
  ABSL_ASSIGN_OR_RETURN(auto split, jit::Compile<PlaneSplit>(request.facts.name, layout.planes));
  PrimitiveInfo info = InfoOf(request);
  info.scratchpad_bytes = copy_bytes + copy->info().scratchpad_bytes;
  return MakeDriven(std::move(info), SplitDriver{layout, desc.dst.winograd(), copy_bytes,
                                                 std::move(copy), std::move(split)});
}

}  // namespace tilewire::reorder
