// SPDX-License-Identifier: Apache-2.0
//
// The rows of depthwise convolutions from and to rows of neighbouring pixels: one call of generated
// code per image and block of channels.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/algorithm/container.h"
#include "engine/base/checked_math.h"
#include "engine/base/range.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/convolution/direct/depthwise_nchw_generator.h"
#include "engine/primitives/convolution/direct/direct_layouts.h"
#include "engine/primitives/convolution/implementations.h"
#include "engine/primitives/convolution/requirements.h"
#include "engine/primitives/creation.h"

namespace tilewire::convolution {
namespace {

// Channels of a piece of work: few enough to leave eight pieces of an image, in whole blocks of
// weights where there are enough.
int64_t ChannelsAtOnce(int64_t channels, int64_t block) {
  constexpr int64_t kPieces = 8;
  const int64_t most = std::max<int64_t>(1, channels / kPieces);
  return most < block ? most : most / block * block;
}

// Immutable.
class DepthwiseNchw final : public Primitive {
 public:
  DepthwiseNchw(PrimitiveInfo info, const ConvolutionDesc& desc, const PostOps& post_ops,
                const VectorUnit& packing, std::unique_ptr<const jit::Generator> code)
      : Primitive(std::move(info)),
        desc_(desc),
        lanes_(packing.lanes()),
        slopes_(VectorsOfSlopes(post_ops, packing)),
        code_(std::move(code)) {}

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const int64_t channels = desc_.src.dim(1), at_once = ChannelsAtOnce(channels, lanes_);
    const int64_t pieces = DivUp(channels, at_once);
    team.ParallelFor(desc_.src.dim(0) * pieces, [&](int64_t piece) {
      const int64_t first = piece % pieces * at_once, end = std::min(channels, first + at_once);
      RunChannels(args, piece / pieces, {first, end - first});
    });
  }

  // The channels of a block of weights at a time.
  void RunChannels(const ExecuteArgs& args, int64_t image, const Range& range) const {
    DepthwiseNchwArgs planes = {};
    planes.src_channel_bytes = desc_.src.stride(1) * kFloatBytes;
    planes.dst_channel_bytes = desc_.dst.stride(1) * kFloatBytes;
    const int64_t end = range.begin + range.size;
    for (int64_t channel = range.begin; channel < end; channel += planes.channels) {
      planes.channels = std::min(end, RoundUp(channel + 1, lanes_)) - channel;
      planes.src = args.Get<const float>(kArgSrc) + PlaneOffset(desc_.src, image, channel);
      planes.dst = args.Get<float>(kArgDst) + PlaneOffset(desc_.dst, image, channel);
      planes.weights = args.Get<const float>(kArgWeights) + desc_.weights.offset0() +
                       channel / lanes_ * desc_.weights.stride(0) + channel % lanes_;
      if (!desc_.bias.IsZero())
        planes.bias = args.Get<const float>(kArgBias) + desc_.bias.offset0() + channel;
      if (!slopes_.empty()) planes.slopes = slopes_.data() + channel * lanes_;
      code_->entry<DepthwiseNchwFunction>()(&planes);
    }
  }

  static int64_t PlaneOffset(const MemoryDesc& desc, int64_t image, int64_t channel) {
    return desc.offset0() + image * desc.stride(0) + channel * desc.stride(1);
  }

  const ConvolutionDesc desc_;
  const int64_t lanes_;  // channels of a block of weights
  const std::vector<float> slopes_;
  const std::unique_ptr<const jit::Generator> code_;
};

// The bits of a function with another code for the widest vectors depend on the width.
bool DependsOnWidth(const PostOp& entry) {
  const auto* eltwise = std::get_if<EltwisePostOp>(&entry);
  return eltwise != nullptr && eltwise->op.algorithm == EltwiseAlgorithm::kGeluErf;
}

// Half and quarter vectors where a whole one would be half empty or more.
VectorUnit UnitOfRows(const VectorUnit& widest, int64_t pixels, const PostOps& post_ops) {
  constexpr int kNarrowest = 16;
  if (absl::c_any_of(post_ops.entries(), DependsOnWidth)) return widest;
  VectorUnit unit = widest;
  while (unit.bytes() > kNarrowest && pixels * 2 <= unit.lanes())
    unit = unit.WithBytes(unit.bytes() / 2);
  return unit;
}

// What generated code adds to a pointer, or reaches from one, in bytes.
absl::Status RequireNearRows(const Geometry& geometry, int64_t src_row, int64_t dst_row) {
  constexpr int64_t kFarthest = std::numeric_limits<int32_t>::max() / 4 / kFloatBytes;
  const std::optional<int64_t> tile = CheckedMul(kDepthwiseNchwRows, geometry.stride[1]);
  const std::optional<int64_t> taps = CheckedMul(geometry.kernel[1], geometry.tap_step[1]);
  const std::optional<int64_t> rows = tile && taps ? CheckedAdd(*tile, *taps) : std::nullopt;
  const std::optional<int64_t> columns = CheckedMul(geometry.kernel[2], geometry.tap_step[2]);
  const std::optional<int64_t> spans[] = {rows ? CheckedMul(*rows, src_row) : std::nullopt, columns,
                                          geometry.pad[2], CheckedMul(geometry.pad[1], src_row),
                                          CheckedMul(kDepthwiseNchwRows, dst_row)};
  for (const std::optional<int64_t>& span : spans) {
    if (!span || *span > kFarthest)
      return absl::UnimplementedError("strides exceed 32-bit displacements");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ConvolutionDesc> ResolveDepthwiseNchw(const Request<ConvolutionDesc>& request) {
  const ConvolutionDesc& desc = request.desc;
  constexpr int64_t kFewestPixels = 4, kMostStride = 2;
  ABSL_RETURN_IF_ERROR(RequireDirectF32(desc, request.attributes));
  const Geometry geometry = GeometryOf(desc);
  if (!geometry.IsDepthwise()) return absl::UnimplementedError("is for one channel a group");
  if (desc.src.rank() > 4) return absl::UnimplementedError("is for tensors without depth");
  if (geometry.out[2] < kFewestPixels || geometry.stride[2] > kMostStride)
    return absl::UnimplementedError("is for rows of 4 pixels or more, and strides up to 2 in them");
  return ResolveLayouts(desc, VectorUnit::Of(request.facts.isa), WeightsKind::kDepthwiseRows);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateDepthwiseNchw(
    const Request<ConvolutionDesc>& request) {
  const ConvolutionDesc& desc = request.desc;
  const VectorUnit packing = VectorUnit::Of(request.facts.isa);
  DepthwiseNchwConfig config{.unit = packing, .geometry = GeometryOf(desc)};
  const int64_t src_row = SpatialStrides(desc.src, 2)[1], dst_row = SpatialStrides(desc.dst, 2)[1];
  ABSL_RETURN_IF_ERROR(RequireNearRows(config.geometry, src_row, dst_row));
  config.unit = UnitOfRows(packing, config.geometry.out[2], request.attributes.post_ops);
  config.src_row_bytes = src_row * kFloatBytes;
  config.dst_row_bytes = dst_row * kFloatBytes;
  config.tap_bytes = packing.bytes();
  config.has_bias = !desc.bias.IsZero();
  config.post_ops = request.attributes.post_ops;
  PrimitiveInfo info = InfoOf(request);
  ABSL_ASSIGN_OR_RETURN(std::unique_ptr<const jit::Generator> code,
                        GenerateDepthwiseNchw(info.name, config));
  info.code_bytes = static_cast<int64_t>(code->code_bytes());
  return std::make_unique<DepthwiseNchw>(std::move(info), desc, request.attributes.post_ops,
                                         packing, std::move(code));
}

}  // namespace tilewire::convolution
