// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/reorder/channel_blocking.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"

namespace tilewire::reorder {
namespace {

constexpr int64_t kRunPixels = 1024;    // of one call of a kernel
constexpr int64_t kPiecePixels = 8192;  // of one piece of work

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
  int group = 16;
  int64_t channels = 0, groups = 0;
  int64_t src_bytes = 0, dst_bytes = 0;  // of an element
  int64_t run_pixels = 0, runs = 0;  // runs of at most kRunPixels make up the evenly spaced pixels
  Pixels pixels;
  absl::InlinedVector<WalkDim, 4> outer;  // batch and the spatial dimensions outside a run
  int64_t items = 0;                      // outer x groups x runs
};

Geometry GeometryOf(const ReorderDesc& desc, int lanes) {
  Geometry g;
  g.channels = desc.src.dim(1);
  // Of two sides with lanes, the one without blocks counts as the side that the lanes come from.
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
  g.run_pixels = std::min(g.pixels.count, kRunPixels);
  g.runs = g.run_pixels == 0 ? 0 : DivUp(g.pixels.count, g.run_pixels);
  g.items = g.groups * g.runs;
  for (int d = 0; d < g.pixels.first_dim; ++d) {
    if (d == 1) continue;
    g.outer.push_back(
        {desc.src.dim(d), desc.src.stride(d) * g.src_bytes, desc.dst.stride(d) * g.dst_bytes});
    g.items *= desc.src.dim(d);
  }
  return g;
}

// One scale a channel; zeros for those that only fill the last group.
std::vector<float> ScalesOf(const OutputScales& scales, const Geometry& geometry) {
  std::vector<float> padded(geometry.groups * geometry.group, 0.0f);
  for (int64_t c = 0; c < geometry.channels; ++c) {
    padded[c] = scales.scales[scales.mask == 0 ? 0 : c];
  }
  return padded;
}

using Kernel = void (*)(const ChannelBlockingArgs*);
// By the channels of the group; null where no group needs it.
struct Kernels {
  std::unique_ptr<const jit::Generator> full, tail, empty;
  Kernel Of(int64_t channels, int group) const {
    const auto& kernel = channels >= group ? full : channels > 0 ? tail : empty;
    return kernel->entry<Kernel>();
  }
};

// Immutable.
class ChannelBlocking final : public Primitive {
 public:
  ChannelBlocking(PrimitiveInfo info, const ReorderDesc& desc, const Attributes& attributes,
                  const Geometry& geometry, Kernels kernels)
      : Primitive(std::move(info)),
        desc_(desc),
        geometry_(geometry),
        scales_(ScalesOf(attributes.output_scales, geometry)),
        kernels_(std::move(kernels)),
        items_at_once_(
            std::max<int64_t>(1, kPiecePixels / std::max<int64_t>(1, geometry.run_pixels))) {}

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const Geometry& g = geometry_;
    const auto* src = args.Get<const std::byte>(kArgSrc) + desc_.src.offset0() * g.src_bytes;
    auto* dst = args.Get<std::byte>(kArgDst) + desc_.dst.offset0() * g.dst_bytes;
    team.ParallelFor(DivUp(g.items, items_at_once_), [&](int64_t piece) {
      const int64_t end = std::min(g.items, (piece + 1) * items_at_once_);
      for (int64_t item = piece * items_at_once_; item < end; ++item) RunItem(src, dst, item);
    });
  }

  void RunItem(const std::byte* src, std::byte* dst, int64_t item) const {
    const Geometry& g = geometry_;
    const int64_t first_pixel = item % g.runs * g.run_pixels;
    item /= g.runs;
    const int64_t first_channel = item % g.groups * g.group;
    item /= g.groups;
    const int last = desc_.src.rank() - 1;
    src += g.src_bytes *
           (ChannelOffset(desc_.src, first_channel) + first_pixel * desc_.src.stride(last));
    dst += g.dst_bytes *
           (ChannelOffset(desc_.dst, first_channel) + first_pixel * desc_.dst.stride(last));
    for (auto dim = g.outer.rbegin(); dim != g.outer.rend(); ++dim) {
      src += item % dim->count * dim->src_step;
      dst += item % dim->count * dim->dst_step;
      item /= dim->count;
    }
    const ChannelBlockingArgs args{src,
                                   dst,
                                   scales_.data() + first_channel,
                                   Step(desc_.src, !g.to_lanes) * g.src_bytes,
                                   Step(desc_.dst, g.to_lanes) * g.dst_bytes,
                                   std::min(g.run_pixels, g.pixels.count - first_pixel)};
    kernels_.Of(g.channels - first_channel, g.group)(&args);
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
  const Kernels kernels_;
  const int64_t items_at_once_;
};

absl::Status RequireArithmetic(const ReorderDesc& desc, const Attributes& attributes) {
  const DataType type = desc.src.data_type();
  const bool half = type == DataType::kF16 || type == DataType::kBf16;
  if (half && RequirePlainCopy(desc, attributes).ok()) {
    return absl::UnimplementedError("would quieten NaN of a type that is only copied");
  }
  if ((attributes.output_scales.mask & ~2) != 0) {
    return absl::UnimplementedError("scales along other dimensions than channels");
  }
  return RequireSumAtMost(desc, attributes);
}

ChannelBlockingConfig ConfigOf(const ReorderDesc& desc, const Attributes& attributes,
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

}  // namespace

absl::Status RequireChannelBlocking(const ReorderDesc& desc, const Attributes& attributes) {
  ABSL_RETURN_IF_ERROR(RequireArithmetic(desc, attributes));
  const int rank = desc.src.rank();
  if (rank < 3 || rank > 5) return absl::UnimplementedError("not 1 to 3 spatial dimensions");
  const MemoryDesc &src = desc.src, &dst = desc.dst;
  for (const MemoryDesc* side : {&src, &dst}) {
    if (!side->IsPlain() && !IsChannelBlocked(*side)) {
      return absl::UnimplementedError("blocks other than 16 or 8 channels");
    }
  }
  if (!HasLanes(src) && !HasLanes(dst)) return absl::UnimplementedError("no neighbouring channels");
  if (src.IsPlain() && dst.IsPlain() && src.stride(1) == dst.stride(1)) {
    return absl::UnimplementedError("no other order of dimensions");
  }
  if (src.inner_blocks() == dst.inner_blocks() && IsChannelBlocked(src) &&
      RequirePlainCopy(desc, attributes).ok()) {
    return absl::UnimplementedError("the same blocks of the same type");
  }
  for (const MemoryDesc* side : {&src, &dst}) {
    if (HasLanes(*side) || side->dim(1) <= 1) continue;
    if (side->stride(rank - 1) != 1 && RunOf(desc).count > 1) {
      return absl::UnimplementedError("neither channels nor pixels are neighbours");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateChannelBlocking(const ReorderDesc& desc,
                                                                 const Attributes& attributes,
                                                                 absl::string_view name, int lanes,
                                                                 CompileChannelBlocking compile) {
  const Geometry geometry = GeometryOf(desc, lanes);
  PrimitiveInfo info =
      BasicInfo(name, PrimitiveKind::kReorder, ArgsOf(desc.src, desc.dst), attributes);
  Kernels kernels;
  const auto add = [&](int64_t channels,
                       std::unique_ptr<const jit::Generator>* kernel) -> absl::Status {
    ABSL_ASSIGN_OR_RETURN(*kernel, compile(ConfigOf(desc, attributes, geometry, channels)));
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
  return std::make_unique<ChannelBlocking>(std::move(info), desc, attributes, geometry,
                                           std::move(kernels));
}

}  // namespace tilewire::reorder
