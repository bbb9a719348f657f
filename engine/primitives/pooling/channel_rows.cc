// SPDX-License-Identifier: Apache-2.0
//
// Channels are cut into groups of one vector. In blocked layouts one piece of work is some groups
// of an image at one depth, whose rows of dst follow each other; where all channels of a pixel are
// neighbours it is a row of dst, group after group. Where rows are short, several groups are one
// call of the generated code. Channels that do not fill the last vector are masked on AVX-512; on
// AVX2 the last vector begins earlier, and some channels are computed twice. The padded tail needs
// no care: the tail of src is zero, and so are the maximum and the average of zeros.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/pooling/axis.h"
#include "engine/primitives/pooling/implementations.h"
#include "engine/primitives/pooling/row_generator.h"
#include "engine/threading/stop.h"

namespace tilewire::pooling {
namespace {

bool IsPlain(const MemoryDesc& desc) {
  return desc.IsPlain() && (desc.stride(1) == 1 || desc.dim(1) == 1);
}

// Channels of one vector; 0 where no vector fits.
int LanesOf(const VectorUnit& unit, const PoolingDesc& desc) {
  const int64_t element_bytes = SizeOf(desc.src.data_type());
  const bool as_they_are = desc.algorithm == PoolingAlgorithm::kMax;  // not widened to 32 bits
  const int widest = unit.lanes() * static_cast<int>(as_they_are ? 4 / element_bytes : 1);
  const bool plain = IsPlain(desc.src);
  // Channels that are left over, or all if there are few, take a vector under a mask.
  const bool masked = plain && unit.has_masks();
  const int64_t channels = plain ? desc.src.dim(1) : desc.src.BlockSize(1);
  for (int lanes = widest; lanes >= (masked ? unit.lanes() : 8); lanes /= 2) {
    if (plain ? lanes <= channels : channels % lanes == 0) return lanes;
  }
  return masked ? unit.lanes() : 0;
}

absl::Status RequireLayouts(const VectorUnit& unit, const PoolingDesc& desc) {
  const MemoryDesc &src = desc.src, &dst = desc.dst;
  const InnerBlocks& blocks = src.inner_blocks();
  const bool blocked = blocks.size() == 1 && blocks[0].dim == 1 && dst.inner_blocks() == blocks;
  if (!blocked && !(IsPlain(src) && IsPlain(dst))) {
    return Unimplemented("takes channels that are neighbours, not ", src.ToString(), " and ",
                         dst.ToString());
  }
  if (LanesOf(unit, desc) == 0) {
    return Unimplemented("has no vector for ", blocked ? src.BlockSize(1) : src.dim(1),
                         " neighbouring channels");
  }
  return absl::OkStatus();
}

constexpr int64_t kReach = int64_t{1} << 30;

// Each edge output is code of its own, and offsets are 32-bit.
absl::Status RequireSizes(const PoolingDesc& desc) {
  const Axis w = AxisOf(desc, 0);
  if (w.kernel > 512 || w.stride > 512) {
    return Unimplemented("takes a width and stride up to 512, not ", w.kernel, " and ", w.stride);
  }
  const int64_t pixels = std::max({w.in, w.out, 32 * w.stride, w.kernel});
  if (pixels > kReach / std::max<int64_t>({w.src_stride, w.dst_stride, 1})) {
    return Unimplemented("rows over 2^30 bytes");
  }
  return absl::OkStatus();
}

RowShape RowShapeOf(const VectorUnit& unit, const PoolingDesc& desc, int tail_lanes) {
  const Axis w = AxisOf(desc, 0);
  return {unit,
          desc.algorithm,
          desc.src.data_type(),
          LanesOf(unit, desc),
          tail_lanes,
          w.src_stride,
          w.dst_stride,
          w.in,
          w.out,
          w.kernel,
          w.stride,
          w.padding,
          WindowOf(desc),
          /*groups=*/1,
          /*src_group_bytes=*/0,
          /*dst_group_bytes=*/0,
          AxisOf(desc, 1).kernel,
          SavesPlaces(desc)};
}

// Bytes from channel 0.
int64_t ChannelOffset(const MemoryDesc& md, int64_t channel) {
  const int64_t block = md.BlockSize(1);
  return (channel / block * md.stride(1) + channel % block) * SizeOf(md.data_type());
}

// Several groups at once where rows are short and `groups` are evenly spaced.
RowShape WideRowShapeOf(const VectorUnit& unit, const PoolingDesc& desc, int64_t groups) {
  RowShape shape = RowShapeOf(unit, desc, /*tail_lanes=*/0);
  if (shape.out > RowShape::kShortRow || shape.out == 0 || shape.saves_places) return shape;
  if (!IsPlain(desc.src) && desc.src.BlockSize(1) != shape.lanes) return shape;
  const int64_t src_step = ChannelOffset(desc.src, shape.lanes);
  const int64_t dst_step = ChannelOffset(desc.dst, shape.lanes);
  if (std::max(src_step, dst_step) > kReach / RowShape::kChains) return shape;
  shape.groups = static_cast<int>(std::min(RowShape::kChains / shape.out, groups));
  shape.src_group_bytes = src_step;
  shape.dst_group_bytes = dst_step;
  return shape;
}

// The channels of one vector, or of several.
struct Group {
  int64_t src, dst;  // bytes from channel 0
  const RowGenerator* row;
};

struct Rows {
  std::unique_ptr<const RowGenerator> wide, full, tail;  // null where no group needs it
  std::vector<Group> groups;
};

absl::StatusOr<Rows> MakeRows(const VectorUnit& unit, const PoolingDesc& desc,
                              absl::string_view name) {
  Rows rows;
  const int lanes = LanesOf(unit, desc);
  const int64_t channels = IsPlain(desc.src) ? desc.src.dim(1) : desc.src.padded_dims()[1];
  const auto add = [&](int64_t channel, const std::unique_ptr<const RowGenerator>& row) {
    rows.groups.push_back(
        {ChannelOffset(desc.src, channel), ChannelOffset(desc.dst, channel), row.get()});
  };
  const auto compile = [name](const RowShape& shape) {
    return jit::Compile<RowGenerator>(shape, name);
  };
  int64_t channel = 0;
  const RowShape wide = WideRowShapeOf(unit, desc, channels / lanes);
  if (wide.groups > 1) {
    ABSL_ASSIGN_OR_RETURN(rows.wide, compile(wide));
    const int64_t step = wide.groups * lanes;
    for (; channel + step <= channels; channel += step) add(channel, rows.wide);
  }
  const int64_t left = channels % lanes;
  const bool masked = left > 0 && unit.has_masks();
  if (channel + lanes <= channels || (left > 0 && !masked)) {
    ABSL_ASSIGN_OR_RETURN(rows.full, compile(RowShapeOf(unit, desc, /*tail_lanes=*/0)));
  }
  for (; channel + lanes <= channels; channel += lanes) add(channel, rows.full);
  if (masked) {
    ABSL_ASSIGN_OR_RETURN(rows.tail, compile(RowShapeOf(unit, desc, static_cast<int>(left))));
    add(channel, rows.tail);
  } else if (left > 0) {
    add(channels - lanes, rows.full);
  }
  return rows;
}

// Immutable.
class ChannelRows final : public Primitive {
 public:
  ChannelRows(PrimitiveInfo info, const PoolingDesc& desc, Rows rows)
      : Primitive(std::move(info)),
        src_desc_(desc.src),
        dst_desc_(desc.dst),
        element_bytes_(SizeOf(desc.src.data_type())),
        depth_(AxisOf(desc, 2)),
        height_(AxisOf(desc, 1)),
        width_taps_(AxisOf(desc, 0).kernel),
        rows_(std::move(rows)),
        groups_at_once_(std::max<int64_t>(1, static_cast<int64_t>(rows_.groups.size()) / kPieces)) {
  }

 private:
  static constexpr int64_t kPieces = 16;  // of an image at one depth: work for several threads

  // First elements, or those of an image; places may be null.
  struct Tensors {
    const std::byte* src;
    std::byte* dst;
    uint8_t* places;
  };

  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    if (dst_desc_.ElementCount() == 0) return;
    Tensors all = {First<const std::byte>(args, kArgSrc), First<std::byte>(args, kArgDst), nullptr};
    if (!Desc(kArgWorkspace).IsZero())
      all.places = args.Get<uint8_t>(kArgWorkspace) + dst_desc_.offset0();
    const bool plain = dst_desc_.IsPlain();
    const auto groups = absl::MakeConstSpan(rows_.groups);
    // The pieces of an image at one depth.
    const int64_t pieces =
        plain ? height_.out : DivUp(static_cast<int64_t>(groups.size()), groups_at_once_);
    team.ParallelFor(dst_desc_.dim(0) * depth_.out * pieces, [&](int64_t i) {
      const int64_t piece = i % pieces, od = i / pieces % depth_.out, n = i / pieces / depth_.out;
      const Tensors image = {
          all.src + n * src_desc_.stride(0) * element_bytes_,
          all.dst + n * dst_desc_.stride(0) * element_bytes_,
          all.places == nullptr ? nullptr : all.places + n * dst_desc_.stride(0)};
      if (plain) {
        for (const Group& group : groups) RunRows(group, image, od, piece, piece + 1);
        return;
      }
      for (const Group& group : groups.subspan(piece * groups_at_once_, groups_at_once_)) {
        RunRows(group, image, od, 0, height_.out);
      }
    });
  }

  // Rows [begin, end) of a group at depth `od`.
  void RunRows(const Group& group, const Tensors& image, int64_t od, int64_t begin,
               int64_t end) const {
    const auto run = group.row->entry<void (*)(const RowArgs*)>();
    RowArgs args = {};
    args.depths = depth_.Taps(od);
    args.depth_stride_bytes = depth_.src_stride;
    args.height_stride_bytes = height_.src_stride;
    for (int64_t oh = begin; oh < end; ++oh) {
      args.src = image.src + group.src + depth_.Begin(od) * depth_.src_stride +
                 height_.Begin(oh) * height_.src_stride;
      const int64_t at = group.dst + od * depth_.dst_stride + oh * height_.dst_stride;
      args.dst = image.dst + at;
      if (image.places != nullptr) args.places = image.places + at / element_bytes_;
      args.tap = (depth_.FirstTap(od) * height_.kernel + height_.FirstTap(oh)) * width_taps_;
      args.heights = height_.Taps(oh);
      args.rows = static_cast<float>(args.depths * args.heights);
      run(&args);
      if (threading::Stopped()) return;
    }
  }

  const MemoryDesc src_desc_, dst_desc_;
  const int64_t element_bytes_;
  const Axis depth_, height_;
  const int64_t width_taps_;
  const Rows rows_;
  const int64_t groups_at_once_;
};

}  // namespace

absl::StatusOr<PoolingDesc> ResolveBf16Maximum(const Request<PoolingDesc>& request) {
  ABSL_RETURN_IF_ERROR(RequireType(DataType::kBf16, {&request.desc.src}));
  ABSL_RETURN_IF_ERROR(RequireNoPlaces(request.desc));
  ABSL_ASSIGN_OR_RETURN(PoolingDesc resolved, ResolveDefaults(request.desc, request.attributes));
  if (resolved.src.IsPlain()) return Unimplemented("takes blocks of channels");
  ABSL_RETURN_IF_ERROR(RequireLayouts(VectorUnit::Of(request.facts.isa), resolved));
  ABSL_RETURN_IF_ERROR(RequireSizes(resolved));
  return resolved;
}

absl::StatusOr<PoolingDesc> ResolveChannelRows(const Request<PoolingDesc>& request) {
  const PoolingDesc& desc = request.desc;
  ABSL_RETURN_IF_ERROR(request.facts.traits.is_integer ? RequireInteger(desc.src)
                                                       : RequireF32(desc.src));
  ABSL_RETURN_IF_ERROR(RequireNoPlaces(request.desc));
  ABSL_ASSIGN_OR_RETURN(PoolingDesc resolved, ResolveDefaults(desc, request.attributes));
  ABSL_RETURN_IF_ERROR(RequireLayouts(VectorUnit::Of(request.facts.isa), resolved));
  ABSL_RETURN_IF_ERROR(RequireSizes(resolved));
  return resolved;
}

absl::StatusOr<PoolingDesc> ResolveMaximumPlacesRows(const Request<PoolingDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(PoolingDesc resolved, ResolveMaximumPlaces(request));
  ABSL_RETURN_IF_ERROR(RequireLayouts(VectorUnit::Of(request.facts.isa), resolved));
  ABSL_RETURN_IF_ERROR(RequireSizes(resolved));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateChannelRows(const Request<PoolingDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(
      Rows rows, MakeRows(VectorUnit::Of(request.facts.isa), request.desc, request.facts.name));
  PrimitiveInfo info = InfoOf(request);
  for (const auto* row : {rows.wide.get(), rows.full.get(), rows.tail.get()}) {
    if (row != nullptr) info.code_bytes += static_cast<int64_t>(row->code_bytes());
  }
  return std::make_unique<ChannelRows>(std::move(info), request.desc, std::move(rows));
}

}  // namespace tilewire::pooling
