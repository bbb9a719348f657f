// SPDX-License-Identifier: Apache-2.0
//
// One piece of work is a channel block of an image at one depth; its rows of dst follow each other.
// The padded tail needs no care: the tail of src is zero, and so are the maximum and the average of
// zeros.
#include "engine/primitives/pooling/blocked.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/pooling/implementations.h"
#include "engine/primitives/pooling/row_generator.h"

namespace tilewire::pooling {
namespace {

int64_t BlockOf(cpu::Isa isa) { return isa >= cpu::Isa::kAvx512 ? 16 : 8; }

absl::Status RequireBlocked(const MemoryDesc& desc, int64_t block) {
  const int width = desc.rank() - 1;
  if (desc.inner_blocks() != InnerBlocks{{1, block}} || desc.stride(width) != block) {
    return absl::UnimplementedError(
        absl::StrCat("takes channels in blocks of ", block, ", not ", desc.ToString()));
  }
  if (desc.dim(width) > (int64_t{1} << 20)) {
    return absl::UnimplementedError(absl::StrCat("takes rows up to 2^20, not ", desc.dim(width)));
  }
  return absl::OkStatus();
}

// One spatial dimension; depth and height that a tensor lacks are of size 1.
struct Axis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, padding = 0;
  int64_t src_stride = 0, dst_stride = 0;  // elements

  // The part of window `o` that lies in src.
  int64_t Begin(int64_t o) const { return std::max<int64_t>(o * stride - padding, 0); }
  int64_t Taps(int64_t o) const { return std::min(o * stride - padding + kernel, in) - Begin(o); }
};

// `back` counts from W: 0 is width, 1 height, 2 depth.
Axis AxisOf(const PoolingDesc& desc, int back) {
  const int d = static_cast<int>(desc.kernel.size()) - 1 - back;
  if (d < 0) return {};
  return {desc.src.dim(d + 2),  desc.dst.dim(d + 2),    desc.kernel[d],        desc.strides[d],
          desc.padding_left[d], desc.src.stride(d + 2), desc.dst.stride(d + 2)};
}

RowShape RowShapeOf(cpu::Isa isa, const PoolingDesc& desc) {
  const Axis w = AxisOf(desc, 0);
  int64_t window = 1;
  for (int64_t kernel : desc.kernel) window *= kernel;
  return {isa, desc.algorithm, w.in, w.out, w.kernel, w.stride, w.padding, window};
}

// Immutable.
class Blocked final : public Primitive {
 public:
  Blocked(PrimitiveInfo info, const PoolingDesc& desc, std::unique_ptr<const RowGenerator> row)
      : Primitive(std::move(info)),
        src_desc_(desc.src),
        dst_desc_(desc.dst),
        depth_(AxisOf(desc, 2)),
        height_(AxisOf(desc, 1)),
        row_(std::move(row)) {}

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    if (dst_desc_.ElementCount() == 0) return;
    const float* src = args.Get<const float>(kArgSrc) + src_desc_.offset0();
    float* dst = args.Get<float>(kArgDst) + dst_desc_.offset0();
    const int64_t blocks = dst_desc_.padded_dims()[1] / dst_desc_.BlockSize(1);
    team.ParallelFor(dst_desc_.dim(0) * blocks * depth_.out, [&](int64_t i) {
      const int64_t n = i / (blocks * depth_.out), block = i / depth_.out % blocks;
      RunDepth(src + n * src_desc_.stride(0) + block * src_desc_.stride(1),
               dst + n * dst_desc_.stride(0) + block * dst_desc_.stride(1), i % depth_.out);
    });
  }

  void RunDepth(const float* src, float* dst, int64_t od) const {
    const auto run = row_->entry<void (*)(const RowArgs*)>();
    RowArgs args = {};
    args.depths = depth_.Taps(od);
    args.depth_stride_bytes = depth_.src_stride * sizeof(float);
    args.height_stride_bytes = height_.src_stride * sizeof(float);
    for (int64_t oh = 0; oh < height_.out; ++oh) {
      args.src =
          src + depth_.Begin(od) * depth_.src_stride + height_.Begin(oh) * height_.src_stride;
      args.dst = dst + od * depth_.dst_stride + oh * height_.dst_stride;
      args.heights = height_.Taps(oh);
      args.rows = static_cast<float>(args.depths * args.heights);
      run(&args);
    }
  }

  const MemoryDesc src_desc_, dst_desc_;
  const Axis depth_, height_;
  const std::unique_ptr<const RowGenerator> row_;
};

}  // namespace

absl::StatusOr<PoolingDesc> ResolveBlocked(cpu::Isa isa, const PoolingDesc& desc,
                                           const Attributes& attributes) {
  ABSL_ASSIGN_OR_RETURN(PoolingDesc resolved, ResolveDefaults(desc, attributes));
  ABSL_RETURN_IF_ERROR(RequireBlocked(resolved.src, BlockOf(isa)));
  ABSL_RETURN_IF_ERROR(RequireBlocked(resolved.dst, BlockOf(isa)));
  // Each edge output is code of its own, and offsets are 32-bit.
  const Axis w = AxisOf(resolved, 0);
  if (w.kernel > 512 || w.stride > 512) {
    return absl::UnimplementedError(
        absl::StrCat("takes a width and stride up to 512, not ", w.kernel, " and ", w.stride));
  }
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateBlocked(cpu::Isa isa, const PoolingDesc& desc,
                                                         const Attributes& attributes,
                                                         absl::string_view name) {
  ABSL_ASSIGN_OR_RETURN(std::unique_ptr<const RowGenerator> row,
                        jit::Compile<RowGenerator>(RowShapeOf(isa, desc), name));
  PrimitiveInfo info =
      BasicInfo(name, PrimitiveKind::kPooling, ArgsOf(desc.src, desc.dst), attributes);
  info.code_bytes = static_cast<int64_t>(row->code_bytes());
  return std::make_unique<Blocked>(std::move(info), desc, std::move(row));
}

}  // namespace tilewire::pooling
