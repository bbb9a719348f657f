// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/reorder/channel_blocking.h"

#include <algorithm>
#include <utility>

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
  int64_t count, src_step, dst_step;  // elements
};

struct Geometry {
  bool to_blocked = false;
  bool transposes = false;
  int group = 16;
  int64_t channels = 0, groups = 0;
  int64_t run_pixels = 0, runs = 0;  // runs of at most kRunPixels make up the evenly spaced pixels
  Pixels pixels;
  absl::InlinedVector<WalkDim, 4> outer;  // batch and the spatial dimensions outside a run
  int64_t items = 0;                      // outer x groups x runs
};

Geometry GeometryOf(const ReorderDesc& desc, int lanes) {
  Geometry g;
  g.to_blocked = IsChannelBlocked(desc.dst);
  const MemoryDesc& plain = g.to_blocked ? desc.src : desc.dst;
  const MemoryDesc& blocked = g.to_blocked ? desc.dst : desc.src;
  g.channels = plain.dim(1);
  g.transposes = plain.stride(1) != 1 && g.channels > 1;
  g.group = static_cast<int>(std::min<int64_t>(lanes, blocked.BlockSize(1)));
  g.groups = (g.to_blocked ? blocked.padded_dims()[1] : g.channels) / g.group +
             (!g.to_blocked && g.channels % g.group != 0);
  g.pixels = RunOf(desc);
  g.run_pixels = std::min(g.pixels.count, kRunPixels);
  g.runs = g.run_pixels == 0 ? 0 : DivUp(g.pixels.count, g.run_pixels);
  g.items = g.groups * g.runs;
  for (int d = 0; d < g.pixels.first_dim; ++d) {
    if (d == 1) continue;
    g.outer.push_back({desc.src.dim(d), desc.src.stride(d), desc.dst.stride(d)});
    g.items *= desc.src.dim(d);
  }
  return g;
}

using Kernel = void (*)(const ChannelBlockingArgs*);
struct Kernels {
  std::unique_ptr<const jit::Generator> full, tail,
      empty;  // by channels of the group; null where none is
  Kernel Of(int64_t channels, int group) const {
    const auto& kernel = channels >= group ? full : channels > 0 ? tail : empty;
    return kernel->entry<Kernel>();
  }
};

// Immutable.
class ChannelBlocking final : public Primitive {
 public:
  ChannelBlocking(PrimitiveInfo info, const ReorderDesc& desc, const Geometry& geometry,
                  Kernels kernels)
      : Primitive(std::move(info)),
        desc_(desc),
        geometry_(geometry),
        kernels_(std::move(kernels)),
        items_at_once_(
            std::max<int64_t>(1, kPiecePixels / std::max<int64_t>(1, geometry.run_pixels))) {}

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const auto* src = args.Get<const float>(kArgSrc) + desc_.src.offset0();
    auto* dst = args.Get<float>(kArgDst) + desc_.dst.offset0();
    team.ParallelFor(DivUp(geometry_.items, items_at_once_), [&](int64_t piece) {
      const int64_t end = std::min(geometry_.items, (piece + 1) * items_at_once_);
      for (int64_t item = piece * items_at_once_; item < end; ++item) RunItem(src, dst, item);
    });
  }

  void RunItem(const float* src, float* dst, int64_t item) const {
    const Geometry& g = geometry_;
    const int64_t first_pixel = item % g.runs * g.run_pixels;
    item /= g.runs;
    const int64_t first_channel = item % g.groups * g.group;
    item /= g.groups;
    const int last = desc_.src.rank() - 1;
    src += ChannelOffset(desc_.src, first_channel) + first_pixel * desc_.src.stride(last);
    dst += ChannelOffset(desc_.dst, first_channel) + first_pixel * desc_.dst.stride(last);
    for (auto dim = g.outer.rbegin(); dim != g.outer.rend(); ++dim) {
      src += item % dim->count * dim->src_step;
      dst += item % dim->count * dim->dst_step;
      item /= dim->count;
    }
    const ChannelBlockingArgs args{src, dst, StepBytes(desc_.src), StepBytes(desc_.dst),
                                   std::min(g.run_pixels, g.pixels.count - first_pixel)};
    kernels_.Of(g.channels - first_channel, g.group)(&args);
  }

  static int64_t ChannelOffset(const MemoryDesc& side, int64_t channel) {
    const int64_t block = side.BlockSize(1);
    // A group of zeros alone may lie past the last channel, inside the last block.
    return channel / block * side.stride(1) + channel % block;
  }

  int64_t StepBytes(const MemoryDesc& side) const {
    const bool by_channel = geometry_.transposes && side.IsPlain();
    return side.stride(by_channel ? 1 : side.rank() - 1) * static_cast<int64_t>(sizeof(float));
  }

  const ReorderDesc desc_;
  const Geometry geometry_;
  const Kernels kernels_;
  const int64_t items_at_once_;
};

}  // namespace

absl::Status RequireChannelBlocking(const ReorderDesc& desc, const Attributes& attributes) {
  ABSL_RETURN_IF_ERROR(RequirePlainCopy(desc, attributes));
  if (desc.src.data_type() != DataType::kF32) return absl::UnimplementedError("not f32");
  const int rank = desc.src.rank();
  if (rank < 3 || rank > 5) return absl::UnimplementedError("not 1 to 3 spatial dimensions");
  const bool to_blocked = IsChannelBlocked(desc.dst);
  const MemoryDesc& plain = to_blocked ? desc.src : desc.dst;
  if (!plain.IsPlain() || !(to_blocked || IsChannelBlocked(desc.src))) {
    return absl::UnimplementedError("not between a plain layout and blocks of 16 or 8 channels");
  }
  const bool pixels_dense = plain.stride(rank - 1) == 1 || RunOf(desc).count <= 1;
  if (plain.stride(1) != 1 && plain.dim(1) > 1 && !pixels_dense) {
    return absl::UnimplementedError("neither channels nor pixels are neighbours");
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
    const ChannelBlockingConfig config{geometry.transposes, geometry.to_blocked, geometry.group,
                                       static_cast<int>(channels)};
    ABSL_ASSIGN_OR_RETURN(*kernel, compile(config));
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
  return std::make_unique<ChannelBlocking>(std::move(info), desc, geometry, std::move(kernels));
}

}  // namespace tilewire::reorder
