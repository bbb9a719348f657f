// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/reorder/channel_blocking.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "engine/base/status_macros.h"
#include "engine/jit/vector_unit.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reorder/transposition.h"
#include "engine/primitives/single_source.h"

namespace tilewire::reorder {
namespace {

// The size of one call of a kernel. Copied, several groups of a pixel are moved before the next
// pixel: what lies side by side is read or written in order, and there are not more streams on the
// other side than the core fetches ahead. Transposed between plain tensors, all groups of a run are
// moved before the next run, so that the lines in which groups meet are still in the cache.
constexpr int64_t kTransposedPixels = 1024, kCopiedPixels = 64, kCopiedGroups = 16;
constexpr int64_t kTransposedElements = 64 * 1024;  // of a run between plain tensors
constexpr int64_t kPieceVectors = 8192;             // of one piece of work

bool IsChannelBlocked(const MemoryDesc& desc) {
  const InnerBlocks& blocks = desc.inner_blocks();
  return blocks.size() == 1 && blocks[0].dim == 1 && (blocks[0].size == 16 || blocks[0].size == 8);
}

// Channels are neighbours.
bool HasLanes(const MemoryDesc& desc) {
  return IsChannelBlocked(desc) || (desc.IsPlain() && desc.stride(1) == 1);
}

// Evenly spaced pixels from the innermost spatial dimension outwards, as far as both sides allow.
struct Pixels {
  int64_t count = 1;
  int first_dim = 0;  // spatial dimensions from this one on are in the run
};

Pixels RunOf(const ReorderDesc& desc) {
  const int last = desc.src.rank() - 1;
  Pixels run{desc.src.dim(last), last};
  for (int d = last - 1; d >= 2; --d) {
    bool even = true;
    for (const MemoryDesc* side : {&desc.src, &desc.dst}) {
      even = even && side->stride(d) == side->stride(d + 1) * side->dim(d + 1);
    }
    if (!even) break;
    run.count *= desc.src.dim(d);
    run.first_dim = d;
  }
  return run;
}

// A dimension that the walk over runs steps through.
struct WalkDim {
  int64_t count, src_step, dst_step;  // bytes
};

struct Geometry {
  bool transposes = false;
  bool to_lanes = false;
  bool groups_first = false;  // the groups of a run follow each other, else the runs of a group
  int group = 16;
  int64_t channels = 0, groups = 0;
  int64_t src_bytes = 0, dst_bytes = 0;  // of an element
  int64_t run_pixels = 0, runs = 0;      // runs of at most so many make up the evenly spaced pixels
  Pixels pixels;
  absl::InlinedVector<WalkDim, 4> outer;  // batch and the spatial dimensions outside a run
  int64_t outers = 1;                     // their product
};

Geometry GeometryOf(const ReorderDesc& desc, int lanes) {
  Geometry g;
  g.channels = desc.src.dim(1);
  // If both sides have lanes, the one without blocks counts as the side that the lanes come from.
  g.to_lanes = IsChannelBlocked(desc.dst) || (HasLanes(desc.dst) && !HasLanes(desc.src));
  const MemoryDesc& other = g.to_lanes ? desc.src : desc.dst;
  g.transposes = !HasLanes(other) && g.channels > 1;
  g.group = lanes;
  for (const MemoryDesc* side : {&desc.src, &desc.dst}) {
    if (IsChannelBlocked(*side)) {
      g.group = static_cast<int>(std::min<int64_t>(g.group, side->BlockSize(1)));
    }
  }
  // A blocked destination has groups that are zeros alone, too.
  g.groups = DivUp(desc.dst.padded_dims()[1], g.group);
  g.src_bytes = SizeOf(desc.src.data_type());
  g.dst_bytes = SizeOf(desc.dst.data_type());
  g.pixels = RunOf(desc);
  g.groups_first = !g.transposes || (desc.src.IsPlain() && desc.dst.IsPlain());
  int64_t run = g.transposes ? kTransposedPixels : kCopiedPixels;
  if (g.transposes && g.groups_first && g.channels > 0)
    run = std::clamp<int64_t>(kTransposedElements / g.channels / lanes, 4, run / lanes) * lanes;
  g.run_pixels = std::min(g.pixels.count, run);
  g.runs = g.run_pixels == 0 ? 0 : DivUp(g.pixels.count, g.run_pixels);
  for (int d = 0; d < g.pixels.first_dim; ++d) {
    if (d == 1) continue;
    g.outer.push_back(
        {desc.src.dim(d), desc.src.stride(d) * g.src_bytes, desc.dst.stride(d) * g.dst_bytes});
    g.outers *= desc.src.dim(d);
  }
  return g;
}

// One scale per channel; zeros for the channels that only fill the last group, and for the whole
// vector that the last group's load may read.
std::vector<float> ScalesOf(const OutputScales& scales, const Geometry& geometry) {
  constexpr int64_t kLargestVector = 16;
  std::vector<float> padded(geometry.groups * geometry.group + kLargestVector, 0.0f);
  for (int64_t c = 0; c < geometry.channels; ++c) {
    padded[c] = scales.scales[scales.mask == 0 ? 0 : c];
  }
  return padded;
}

using Kernel = void (*)(const ChannelBlockingArgs*);
// By the channels of the group; null where no group needs it.
struct ChannelKernels {
  std::unique_ptr<const jit::Generator> full, tail, empty;
};

// Groups that one call of a kernel moves.
struct Chunk {
  int64_t first_channel, groups;
  Kernel kernel;
};

std::vector<Chunk> CutIntoChunks(const ReorderDesc& desc, const Geometry& geometry,
                                 const ChannelKernels& kernels) {
  std::vector<Chunk> chunks;
  const int64_t full_groups = geometry.channels / geometry.group;
  bool together = !geometry.transposes;
  for (const MemoryDesc* side : {&desc.src, &desc.dst}) {
    together = together && (side->IsPlain() || side->BlockSize(1) == geometry.group);
  }
  for (int64_t group = 0; group < geometry.groups;) {
    const int64_t channel = group * geometry.group;
    const auto& kernel = group < full_groups           ? kernels.full
                         : channel < geometry.channels ? kernels.tail
                                                       : kernels.empty;
    const int64_t count =
        together && group < full_groups ? std::min(kCopiedGroups, full_groups - group) : 1;
    chunks.push_back({channel, count, kernel->entry<Kernel>()});
    group += count;
  }
  return chunks;
}

int64_t MostGroups(const std::vector<Chunk>& chunks) {
  int64_t most = 0;
  for (const Chunk& chunk : chunks) most = std::max(most, chunk.groups);
  return most;
}

// Immutable.
class ChannelBlocking final : public SingleSource<std::byte> {
 public:
  // `walked` is the copy that is made from the first elements on.
  ChannelBlocking(PrimitiveInfo info, const ReorderDesc& walked, const Attributes& attributes,
                  const Geometry& geometry, ChannelKernels kernels)
      : SingleSource(std::move(info)),
        desc_(walked),
        geometry_(geometry),
        scales_(ScalesOf(attributes.output_scales, geometry)),
        kernels_(std::move(kernels)),
        chunks_(CutIntoChunks(walked, geometry, kernels_)),
        items_(static_cast<int64_t>(chunks_.size()) * geometry.runs),
        items_at_once_(std::max<int64_t>(
            1, kPieceVectors / std::max<int64_t>(1, geometry.run_pixels * MostGroups(chunks_)))),
        outers_at_once_(std::max<int64_t>(1, items_at_once_ / std::max<int64_t>(1, items_))) {}

 private:
  // The beginning of a pixel's channels on both sides.
  struct Place {
    const std::byte* src;
    std::byte* dst;
  };

  void RunOn(const std::byte* src, std::byte* dst, const threading::Team& team) const override {
    const Geometry& g = geometry_;
    const int64_t pieces = DivUp(items_, items_at_once_);
    team.ParallelFor(pieces * DivUp(g.outers, outers_at_once_), [&](int64_t piece) {
      const int64_t first = piece % pieces * items_at_once_;
      const int64_t outer = piece / pieces * outers_at_once_;
      for (int64_t i = outer; i < std::min(g.outers, outer + outers_at_once_); ++i) {
        RunItems(At({src, dst}, i), first, std::min(items_, first + items_at_once_));
      }
    });
  }

  Place At(Place place, int64_t outer) const {
    for (auto dim = geometry_.outer.rbegin(); dim != geometry_.outer.rend(); ++dim) {
      place.src += outer % dim->count * dim->src_step;
      place.dst += outer % dim->count * dim->dst_step;
      outer /= dim->count;
    }
    return place;
  }

  // An item is one run of one chunk.
  void RunItems(const Place& place, int64_t begin, int64_t end) const {
    const Geometry& g = geometry_;
    const int64_t fast_count = g.groups_first ? static_cast<int64_t>(chunks_.size()) : g.runs;
    int64_t fast = begin % fast_count, slow = begin / fast_count;
    for (int64_t item = begin; item < end; ++item) {
      g.groups_first ? RunItem(place, slow, chunks_[fast]) : RunItem(place, fast, chunks_[slow]);
      if (++fast < fast_count) continue;
      fast = 0;
      ++slow;
    }
  }

  void RunItem(const Place& place, int64_t run, const Chunk& chunk) const {
    const Geometry& g = geometry_;
    const int64_t first_pixel = run * g.run_pixels;
    const int last = desc_.src.rank() - 1;
    ChannelBlockingArgs args = {};
    args.src = place.src + g.src_bytes * (ChannelOffset(desc_.src, chunk.first_channel) +
                                          first_pixel * desc_.src.stride(last));
    args.dst = place.dst + g.dst_bytes * (ChannelOffset(desc_.dst, chunk.first_channel) +
                                          first_pixel * desc_.dst.stride(last));
    args.scales = scales_.data() + chunk.first_channel;
    args.src_step = Step(desc_.src, !g.to_lanes) * g.src_bytes;
    args.dst_step = Step(desc_.dst, g.to_lanes) * g.dst_bytes;
    args.pixels = std::min(g.run_pixels, g.pixels.count - first_pixel);
    args.groups = chunk.groups;
    args.src_group_step = ChannelOffset(desc_.src, g.group) * g.src_bytes;
    args.dst_group_step = ChannelOffset(desc_.dst, g.group) * g.dst_bytes;
    args.src_return = args.src_step - args.groups * args.src_group_step;
    args.dst_return = args.dst_step - args.groups * args.dst_group_step;
    chunk.kernel(&args);
  }

  static int64_t ChannelOffset(const MemoryDesc& side, int64_t channel) {
    const int64_t block = side.BlockSize(1);
    // A group of zeros alone may lie past the last channel, inside the last block.
    return channel / block * side.stride(1) + channel % block;
  }

  // From row to row.
  int64_t Step(const MemoryDesc& side, bool has_lanes) const {
    return side.stride(geometry_.transposes && !has_lanes ? 1 : side.rank() - 1);
  }

  const ReorderDesc desc_;
  const Geometry geometry_;
  const std::vector<float> scales_;
  const ChannelKernels kernels_;
  const std::vector<Chunk> chunks_;
  const int64_t items_;                           // chunks x runs
  const int64_t items_at_once_, outers_at_once_;  // in a piece of work
};

absl::Status RequireArithmetic(const ReorderDesc& desc, const Attributes& attributes) {
  const DataType type = desc.src.data_type();
  const bool half = type == DataType::kF16 || type == DataType::kBf16;
  if (half && RequirePlainCopy(desc, attributes).ok()) {
    return Unimplemented("would quieten NaN of a type that is only copied");
  }
  if ((attributes.output_scales.mask & ~2) != 0) {
    return Unimplemented("scales along other dimensions than channels");
  }
  return RequireSumAtMost(desc, attributes);
}

ChannelBlockingConfig ChannelBlockingConfigOf(const ReorderDesc& desc, const Attributes& attributes,
                                              const Geometry& geometry, int64_t channels) {
  ChannelBlockingConfig config;
  config.transposes = geometry.transposes;
  config.to_lanes = geometry.to_lanes;
  config.channels = static_cast<int>(channels);
  config.readable = IsChannelBlocked(desc.src) ? geometry.group : config.channels;
  config.stored = IsChannelBlocked(desc.dst) ? geometry.group : config.channels;
  if (!RequirePlainCopy(desc, attributes).ok() || SizeOf(desc.src.data_type()) < 4) {
    config.src_type = desc.src.data_type();
    config.dst_type = desc.dst.data_type();
  }
  config.scaled = !attributes.output_scales.IsDefault();
  for (const PostOp& entry : attributes.post_ops.entries()) {
    config.adds = true;
    config.sum_scale = std::get<SumPostOp>(entry).scale;
  }
  return config;
}

// The copy as it is made: with its dimensions in an order that kernels know, where there is one.
ReorderDesc WalkedDesc(const ReorderDesc& desc, const Attributes& attributes) {
  if (attributes.output_scales.mask != 0) return desc;
  if (!desc.dst.IsPlain() && (desc.dst.rank() < 3 || !IsChannelBlocked(desc.dst)))
    return AsChannelBlocks(desc).value_or(desc);
  return AsChannelsAndPixels(desc).value_or(desc);
}

absl::Status RequireOrders(const ReorderDesc& desc, const Attributes& attributes) {
  const int rank = desc.src.rank();
  if (rank < 3 || rank > 5) return Unimplemented("not 1 to 3 spatial dimensions");
  const MemoryDesc &src = desc.src, &dst = desc.dst;
  for (const MemoryDesc* side : {&src, &dst}) {
    if (!side->IsPlain() && !IsChannelBlocked(*side)) {
      return Unimplemented("blocks other than 16 or 8 channels");
    }
  }
  if (!HasLanes(src) && !HasLanes(dst)) return Unimplemented("no neighbouring channels");
  if (src.IsPlain() && dst.IsPlain() && src.stride(1) == dst.stride(1)) {
    return Unimplemented("no other order of dimensions");
  }
  if (src.inner_blocks() == dst.inner_blocks() && IsChannelBlocked(src) &&
      RequirePlainCopy(desc, attributes).ok()) {
    return Unimplemented("the same blocks of the same type");
  }
  for (const MemoryDesc* side : {&src, &dst}) {
    if (HasLanes(*side) || side->dim(1) <= 1) continue;
    if (side->stride(rank - 1) != 1 && RunOf(desc).count > 1) {
      return Unimplemented("neither channels nor pixels are neighbours");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ReorderDesc> ResolveChannelBlocking(const Request<ReorderDesc>& request) {
  const ReorderDesc& desc = request.desc;
  ABSL_RETURN_IF_ERROR(RequireBlocked(desc));
  ABSL_RETURN_IF_ERROR(RequireArithmetic(desc, request.attributes));
  ABSL_RETURN_IF_ERROR(RequireOrders(WalkedDesc(desc, request.attributes), request.attributes));
  return desc;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateChannelBlocking(
    const Request<ReorderDesc>& request) {
  const int lanes = jit::VectorUnit::Of(request.facts.isa).lanes();
  const ReorderDesc walked = WalkedDesc(request.desc, request.attributes);
  const Geometry geometry = GeometryOf(walked, lanes);
  PrimitiveInfo info = InfoOf(request);
  ChannelKernels kernels;
  const auto add = [&](int64_t channels,
                       std::unique_ptr<const jit::Generator>* kernel) -> absl::Status {
    ABSL_ASSIGN_OR_RETURN(
        *kernel, CompileChannelBlocking(
                     request.facts.isa,
                     ChannelBlockingConfigOf(walked, request.attributes, geometry, channels)));
    info.code_bytes += static_cast<int64_t>((*kernel)->code_bytes());
    return absl::OkStatus();
  };
  const int64_t tail = geometry.channels % geometry.group;
  if (geometry.channels >= geometry.group) {
    ABSL_RETURN_IF_ERROR(add(geometry.group, &kernels.full));
  }
  if (tail != 0) ABSL_RETURN_IF_ERROR(add(tail, &kernels.tail));
  if (geometry.groups * geometry.group >= geometry.channels + geometry.group) {
    ABSL_RETURN_IF_ERROR(add(0, &kernels.empty));
  }
  return std::make_unique<ChannelBlocking>(std::move(info), walked, request.attributes, geometry,
                                           std::move(kernels));
}

}  // namespace tilewire::reorder
