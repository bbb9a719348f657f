// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "engine/base/status_macros.h"
#include "engine/jit/vector_unit.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reorder/channel_blocking.h"
#include "engine/primitives/reorder/implementations.h"
#include "engine/primitives/single_source.h"

namespace tilewire::reorder {
namespace {

constexpr int64_t kShortestRun = 8;          // below, registers would stay empty
constexpr int64_t kLongestRun = 1 << 20;     // elements: the table is as long
constexpr int64_t kElementsPerPiece = 1024;  // of a run, in one piece of work
constexpr int64_t kBytes = 4;                // of an element

int LanesDim(const ReorderDesc& desc) { return desc.dst.inner_blocks().back().dim; }

// The dimensions of a run, fastest first, and the others.
struct Split {
  absl::InlinedVector<int, 6> run, outer;
  int64_t run_elements = 1;
};

Split SplitDims(const ReorderDesc& desc) {
  Split split;
  absl::InlinedVector<int, 6> dims;
  for (int d = 0; d < desc.src.rank(); ++d) {
    if (d != LanesDim(desc) && desc.src.dim(d) != 1) dims.push_back(d);
  }
  std::stable_sort(dims.begin(), dims.end(),
                   [&](int a, int b) { return desc.src.stride(a) < desc.src.stride(b); });
  for (int d : dims) {
    if (split.outer.empty() && desc.src.stride(d) == split.run_elements) {
      split.run.push_back(d);
      split.run_elements *= desc.src.dim(d);
    } else {
      split.outer.push_back(d);
    }
  }
  return split;
}

// The place of each element of a run in dst, in bytes.
std::vector<int32_t> RunOffsets(const ReorderDesc& desc, const Split& split) {
  const SeparableOffsets dst(desc.dst);
  std::vector<int32_t> offsets = {0};
  offsets.reserve(split.run_elements);
  for (int d : split.run) {
    const size_t before = offsets.size();
    for (int64_t i = 1; i < desc.src.dim(d); ++i) {
      const int32_t step = static_cast<int32_t>(dst.At(d, i) * kBytes);
      for (size_t k = 0; k < before; ++k) offsets.push_back(offsets[k] + step);
    }
  }
  return offsets;
}

// The largest of them.
int64_t RunReach(const ReorderDesc& desc, const Split& split) {
  const SeparableOffsets dst(desc.dst);
  int64_t reach = 0;
  for (int d : split.run) {
    int64_t most = 0;
    for (int64_t i = 0; i < desc.src.dim(d); ++i) most = std::max(most, dst.At(d, i));
    reach += most * kBytes;
  }
  return reach;
}

using PackingKernel = void (*)(const ChannelBlockingArgs*);
struct PackingKernels {
  std::unique_ptr<const jit::Generator> full, tail;  // of blocks; null where there are none
};

// Immutable.
class WeightsPacking final : public SingleSource<std::byte> {
 public:
  WeightsPacking(PrimitiveInfo info, const ReorderDesc& desc, PackingKernels kernels)
      : SingleSource(std::move(info), /*spoils_padding=*/true),
        desc_(desc),
        lanes_dim_(LanesDim(desc)),
        lanes_(desc.dst.inner_blocks().back().size),
        kernels_(std::move(kernels)) {
    const Split split = SplitDims(desc);
    offsets_ = RunOffsets(desc, split);
    run_elements_ = split.run_elements;
    pieces_ = DivUp(run_elements_, kElementsPerPiece);
    blocks_ = DivUp(desc.src.dim(lanes_dim_), lanes_);
    items_ = pieces_ * blocks_;
    for (int d : split.outer) {
      outer_.push_back({desc.src.dim(d), desc.src.stride(d) * kBytes, desc.dst.stride(d) * kBytes});
      items_ *= desc.src.dim(d);
    }
  }

 private:
  struct WalkDim {
    int64_t count, src_step, dst_step;  // bytes
  };

  void RunOn(const std::byte* src, std::byte* dst, const threading::Team& team) const override {
    team.ParallelFor(items_, [&](int64_t item) { RunItem(src, dst, item); });
  }

  void RunItem(const std::byte* src, std::byte* dst, int64_t item) const {
    const int64_t first = item % pieces_ * kElementsPerPiece;
    item /= pieces_;
    const int64_t block = item % blocks_;
    item /= blocks_;
    for (const WalkDim& dim : outer_) {
      src += item % dim.count * dim.src_step;
      dst += item % dim.count * dim.dst_step;
      item /= dim.count;
    }
    const int64_t lane_step = desc_.src.stride(lanes_dim_) * kBytes;
    ChannelBlockingArgs args = {};
    args.src = src + block * lanes_ * lane_step + first * kBytes;
    args.dst = dst + block * desc_.dst.stride(lanes_dim_) * kBytes;
    args.src_step = lane_step;
    args.pixels = std::min(kElementsPerPiece, run_elements_ - first);
    args.offsets = offsets_.data() + first;
    const bool full = (block + 1) * lanes_ <= desc_.src.dim(lanes_dim_);
    (full ? kernels_.full : kernels_.tail)->entry<PackingKernel>()(&args);
  }

  const ReorderDesc desc_;
  const int lanes_dim_;
  const int64_t lanes_;
  const PackingKernels kernels_;
  std::vector<int32_t> offsets_;  // of a run's elements
  int64_t run_elements_ = 0, pieces_ = 0, blocks_ = 0, items_ = 0;
  absl::InlinedVector<WalkDim, 6> outer_;
};

absl::Status RequireRun(const ReorderDesc& desc) {
  const Split split = SplitDims(desc);
  if (split.run_elements < kShortestRun || split.run_elements > kLongestRun) {
    return Unimplemented("src holds ", split.run_elements, " elements side by side, not ",
                         kShortestRun, " to ", kLongestRun);
  }
  for (int d : split.outer) {
    if (desc.dst.BlockSize(d) != 1) {
      return Unimplemented("a blocked dimension is not dense in src");
    }
  }
  if (RunReach(desc, split) > std::numeric_limits<int32_t>::max()) {
    return Unimplemented("dst exceeds 32-bit displacements");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ReorderDesc> ResolveWeightsPacking(const Request<ReorderDesc>& request) {
  const ReorderDesc& desc = request.desc;
  const int lanes = jit::VectorUnit::Of(request.facts.isa).lanes();
  ABSL_RETURN_IF_ERROR(RequirePlainCopy(desc, request.attributes));
  if (SizeOf(desc.src.data_type()) != kBytes) {
    return Unimplemented("elements of other than four bytes");
  }
  if (!desc.src.IsPlain()) return Unimplemented("src is not plain");
  const InnerBlocks& blocks = desc.dst.inner_blocks();
  if (blocks.empty() || blocks.back().size != lanes ||
      desc.dst.BlockSize(blocks.back().dim) != lanes) {
    return Unimplemented("dst has no innermost block of ", lanes);
  }
  ABSL_RETURN_IF_ERROR(RequireRun(desc));
  return desc;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateWeightsPacking(
    const Request<ReorderDesc>& request) {
  const ReorderDesc& desc = request.desc;
  PrimitiveInfo info = InfoOf(request);
  const int lanes = static_cast<int>(desc.dst.inner_blocks().back().size);
  const int64_t channels = desc.src.dim(LanesDim(desc));
  PackingKernels kernels;
  const auto add = [&](int64_t lanes_in_use,
                       std::unique_ptr<const jit::Generator>* kernel) -> absl::Status {
    ChannelBlockingConfig config;
    config.transposes = config.to_lanes = config.scattered = true;
    config.channels = static_cast<int>(lanes_in_use);
    config.readable = config.stored = lanes;
    ABSL_ASSIGN_OR_RETURN(*kernel, CompileChannelBlocking(request.facts.isa, config));
    info.code_bytes += static_cast<int64_t>((*kernel)->code_bytes());
    return absl::OkStatus();
  };
  if (channels >= lanes) ABSL_RETURN_IF_ERROR(add(lanes, &kernels.full));
  if (channels % lanes != 0) ABSL_RETURN_IF_ERROR(add(channels % lanes, &kernels.tail));
  return std::make_unique<WeightsPacking>(std::move(info), desc, std::move(kernels));
}

}  // namespace tilewire::reorder
