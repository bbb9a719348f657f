// SPDX-License-Identifier: Apache-2.0
//
// Channels are cut into groups of one vector. In blocked layouts one piece of work is a group of an
// image at one depth, whose rows of dst follow each other; where all channels of a pixel are
// neighbours it is a row of dst, group after group. Channels that do not fill the last vector are
// masked on AVX-512; on AVX2 the last vector begins earlier, and some channels are computed twice.
// The padded tail needs no care: the tail of src is zero, and so are the maximum and the average of
// zeros.
#include "engine/primitives/pooling/channel_rows.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/pooling/axis.h"
#include "engine/primitives/pooling/implementations.h"
#include "engine/primitives/pooling/row_generator.h"

namespace tilewire::pooling {
namespace {

bool IsPlain(const MemoryDesc& desc) {
  return desc.IsPlain() && (desc.stride(1) == 1 || desc.dim(1) == 1);
}

// Channels of one vector; 0 where no vector fits.
int LanesOf(cpu::Isa isa, const PoolingDesc& desc) {
  const bool avx512 = isa >= cpu::Isa::kAvx512;
  const bool bytes = SizeOf(desc.src.data_type()) == 1 && desc.algorithm == PoolingAlgorithm::kMax;
  const int widest = (avx512 ? 16 : 8) * (bytes ? 4 : 1);
  const bool plain = IsPlain(desc.src);
  const int64_t channels = plain ? desc.src.dim(1) : desc.src.BlockSize(1);
  for (int lanes = widest; lanes >= (plain && avx512 ? 16 : 8); lanes /= 2) {
    if (plain ? lanes <= channels : channels % lanes == 0) return lanes;
  }
  return plain && avx512 ? 16 : 0;
}

absl::Status RequireLayouts(cpu::Isa isa, const PoolingDesc& desc) {
  const MemoryDesc &src = desc.src, &dst = desc.dst;
  const InnerBlocks& blocks = src.inner_blocks();
  const bool blocked = blocks.size() == 1 && blocks[0].dim == 1 && dst.inner_blocks() == blocks;
  if (!blocked && !(IsPlain(src) && IsPlain(dst))) {
    return absl::UnimplementedError(absl::StrCat("takes channels that are neighbours, not ",
                                                 src.ToString(), " and ", dst.ToString()));
  }
  if (LanesOf(isa, desc) == 0) {
    return absl::UnimplementedError(absl::StrCat(
        "has no vector for ", blocked ? src.BlockSize(1) : src.dim(1), " neighbouring channels"));
  }
  return absl::OkStatus();
}

// Each edge output is code of its own, and offsets are 32-bit.
absl::Status RequireSizes(const PoolingDesc& desc) {
  const Axis w = AxisOf(desc, 0);
  if (w.kernel > 512 || w.stride > 512) {
    return absl::UnimplementedError(
        absl::StrCat("takes a width and stride up to 512, not ", w.kernel, " and ", w.stride));
  }
  constexpr int64_t kReach = int64_t{1} << 30;
  const int64_t pixels = std::max({w.in, w.out, 32 * w.stride, w.kernel});
  if (pixels > kReach / std::max<int64_t>({w.src_stride, w.dst_stride, 1})) {
    return absl::UnimplementedError("rows over 2^30 bytes");
  }
  return absl::OkStatus();
}

RowShape RowShapeOf(cpu::Isa isa, const PoolingDesc& desc, int tail_lanes) {
  const Axis w = AxisOf(desc, 0);
  return {isa,
          desc.algorithm,
          desc.src.data_type(),
          LanesOf(isa, desc),
          tail_lanes,
          w.src_stride,
          w.dst_stride,
          w.in,
          w.out,
          w.kernel,
          w.stride,
          w.padding,
          WindowOf(desc)};
}

// The channels of one vector.
struct Group {
  int64_t src, dst;  // bytes from channel 0
  const RowGenerator* row;
};

struct Rows {
  std::unique_ptr<const RowGenerator> full, tail;  // null where no group needs it
  std::vector<Group> groups;
};

absl::StatusOr<Rows> MakeRows(cpu::Isa isa, const PoolingDesc& desc, absl::string_view name) {
  Rows rows;
  const int lanes = LanesOf(isa, desc);
  const bool plain = IsPlain(desc.src);
  const int64_t channels = plain ? desc.src.dim(1) : desc.src.padded_dims()[1];
  const int64_t size = SizeOf(desc.src.data_type());
  const auto offset = [size](const MemoryDesc& md, int64_t c) {
    const int64_t block = md.BlockSize(1);
    return (c / block * md.stride(1) + c % block) * size;
  };
  if (channels >= lanes) {
    ABSL_ASSIGN_OR_RETURN(rows.full, jit::Compile<RowGenerator>(RowShapeOf(isa, desc, 0), name));
  }
  for (int64_t c = 0; c + lanes <= channels; c += lanes) {
    rows.groups.push_back({offset(desc.src, c), offset(desc.dst, c), rows.full.get()});
  }
  const int64_t left = channels % lanes;
  if (left == 0) return rows;
  if (isa >= cpu::Isa::kAvx512) {
    ABSL_ASSIGN_OR_RETURN(
        rows.tail, jit::Compile<RowGenerator>(RowShapeOf(isa, desc, static_cast<int>(left)), name));
  }
  const int64_t first = rows.tail == nullptr ? channels - lanes : channels - left;
  rows.groups.push_back({offset(desc.src, first), offset(desc.dst, first),
                         rows.tail == nullptr ? rows.full.get() : rows.tail.get()});
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
        rows_(std::move(rows)) {}

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    if (dst_desc_.ElementCount() == 0) return;
    const auto* src = args.Get<const std::byte>(kArgSrc) + src_desc_.offset0() * element_bytes_;
    auto* dst = args.Get<std::byte>(kArgDst) + dst_desc_.offset0() * element_bytes_;
    const bool plain = dst_desc_.IsPlain();
    const int64_t groups = static_cast<int64_t>(rows_.groups.size());
    const int64_t pieces = plain ? height_.out : groups;  // of an image at one depth
    team.ParallelFor(dst_desc_.dim(0) * depth_.out * pieces, [&](int64_t i) {
      const int64_t piece = i % pieces, od = i / pieces % depth_.out, n = i / pieces / depth_.out;
      const std::byte* image = src + n * src_desc_.stride(0) * element_bytes_;
      std::byte* result = dst + n * dst_desc_.stride(0) * element_bytes_;
      if (plain) {
        for (const Group& group : rows_.groups) {
          RunRows(group, image, result, od, piece, piece + 1);
        }
      } else {
        RunRows(rows_.groups[piece], image, result, od, 0, height_.out);
      }
    });
  }

  // Rows [begin, end) of a group at depth `od`.
  void RunRows(const Group& group, const std::byte* src, std::byte* dst, int64_t od, int64_t begin,
               int64_t end) const {
    const auto run = group.row->entry<void (*)(const RowArgs*)>();
    RowArgs args = {};
    args.depths = depth_.Taps(od);
    args.depth_stride_bytes = depth_.src_stride;
    args.height_stride_bytes = height_.src_stride;
    for (int64_t oh = begin; oh < end; ++oh) {
      args.src = src + group.src + depth_.Begin(od) * depth_.src_stride +
                 height_.Begin(oh) * height_.src_stride;
      args.dst = dst + group.dst + od * depth_.dst_stride + oh * height_.dst_stride;
      args.heights = height_.Taps(oh);
      args.rows = static_cast<float>(args.depths * args.heights);
      run(&args);
    }
  }

  const MemoryDesc src_desc_, dst_desc_;
  const int64_t element_bytes_;
  const Axis depth_, height_;
  const Rows rows_;
};

}  // namespace

absl::StatusOr<PoolingDesc> ResolveChannelRows(cpu::Isa isa, const PoolingDesc& desc,
                                               const Attributes& attributes) {
  ABSL_ASSIGN_OR_RETURN(PoolingDesc resolved, ResolveDefaults(desc, attributes));
  ABSL_RETURN_IF_ERROR(RequireLayouts(isa, resolved));
  ABSL_RETURN_IF_ERROR(RequireSizes(resolved));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateChannelRows(cpu::Isa isa, const PoolingDesc& desc,
                                                             const Attributes& attributes,
                                                             absl::string_view name) {
  ABSL_ASSIGN_OR_RETURN(Rows rows, MakeRows(isa, desc, name));
  PrimitiveInfo info =
      BasicInfo(name, PrimitiveKind::kPooling, ArgsOf(desc.src, desc.dst), attributes);
  for (const auto* row : {rows.full.get(), rows.tail.get()}) {
    if (row != nullptr) info.code_bytes += static_cast<int64_t>(row->code_bytes());
  }
  return std::make_unique<ChannelRows>(std::move(info), desc, std::move(rows));
}

}  // namespace tilewire::pooling
