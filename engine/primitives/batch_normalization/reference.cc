// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one channel after the other; statistics in double.
#include <algorithm>
#include <cmath>
#include <variant>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/kernels/tiles/scalar_epilogue.h"
#include "engine/memory/layout.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/batch_normalization/implementations.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reference_primitive.h"

namespace tilewire::batch_normalization {
namespace {

// Immutable.
class Formula {
 public:
  Formula(const BatchNormalizationDesc& desc, const PostOps& post_ops)
      : desc_(desc),
        channel_(desc.dst.dims()),
        post_ops_(post_ops),
        src_(desc.src),
        dst_(desc.dst),
        addend_(HasAddend(desc) ? desc.addend : desc.src) {
    channel_[1] = 1;
  }

  void RunChannel(const ReferencePiece& piece, int64_t c) const {
    const ChannelParameters parameters = ParametersOf(desc_, piece.args());
    const float* src = piece.Get<const float>(kArgSrc) + src_.At(1, c);
    float* dst = piece.Get<float>(kArgDst) + dst_.At(1, c);
    double mean = 0, variance = 0;
    if (desc_.use_global_stats) {
      mean = parameters.mean[c];
      variance = parameters.variance[c];
    } else {
      Statistics(src, &mean, &variance);
    }
    if (WritesStatistics(desc_)) {
      piece.Get<float>(kArgMean)[c] = static_cast<float>(mean);
      piece.Get<float>(kArgVariance)[c] = static_cast<float>(variance);
    }
    const double scale = (parameters.scale == nullptr ? 1 : parameters.scale[c]) /
                         std::sqrt(variance + desc_.epsilon);
    const double shift = parameters.shift == nullptr ? 0 : parameters.shift[c];
    const float* addend =
        HasAddend(desc_) ? piece.Get<const float>(kArgSrc1) + addend_.At(1, c) : nullptr;
    uint8_t* byte =
        SavesBits(desc_) ? piece.Get<uint8_t>(kArgWorkspace) + ByteOfChannel(desc_, c) : nullptr;
    ForEachOperation(channel_, [&](const Dims& index) {
      auto value = static_cast<float>(scale * (src[src_.Offset(index)] - mean) + shift);
      if (addend != nullptr) value += addend[addend_.Offset(index)];
      dst[dst_.Offset(index)] = ApplyPostOps(post_ops_, value, 0);
      if (byte == nullptr) return;
      const bool is_limited = std::isfinite(desc_.relu_limit);
      const bool passes = value > 0 && (!is_limited || value < desc_.relu_limit);
      *byte |= static_cast<uint8_t>(passes << c % 8);
      byte += kBytesOfPixel;
    });
  }

  // The channels that have their bits side by side.
  void RunChannels(const ReferencePiece& piece, int64_t group) const {
    const int64_t first = group * kChannelsOfBits;
    if (SavesBits(desc_)) {
      std::fill_n(piece.Get<uint8_t>(kArgWorkspace) + ByteOfChannel(desc_, first),
                  PixelsOf(desc_) * kBytesOfPixel, uint8_t{0});
    }
    for (int64_t c = first; c < std::min(first + kChannelsOfBits, desc_.src.dim(1)); ++c)
      RunChannel(piece, c);
  }

 private:
  void Statistics(const float* src, double* mean, double* variance) const {
    const double count = static_cast<double>(*ElementCount(channel_));
    ForEachOperation(channel_, [&](const Dims& index) { *mean += src[src_.Offset(index)]; });
    *mean /= count;
    ForEachOperation(channel_, [&](const Dims& index) {
      const double difference = src[src_.Offset(index)] - *mean;
      *variance += difference * difference;
    });
    *variance /= count;
  }

  const BatchNormalizationDesc desc_;
  Dims channel_;  // dst's dims with one channel
  const PostOps post_ops_;
  const SeparableOffsets src_, dst_, addend_;
};

}  // namespace

absl::StatusOr<BatchNormalizationDesc> ResolveReference(
    const Request<BatchNormalizationDesc>& request) {
  const BatchNormalizationDesc& desc = request.desc;
  if (desc.prop_kind == PropKind::kForwardTraining && !request.attributes.post_ops.empty()) {
    return Unimplemented("takes no post-ops for training: fuse_relu saves what backward reads");
  }
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src, desc.dst));
  ABSL_RETURN_IF_ERROR(RequireNoOutputScales(request.attributes));
  const absl::Span<const PostOp> entries = request.attributes.post_ops.entries();
  for (const PostOp& entry : entries) {
    const auto* eltwise = std::get_if<EltwisePostOp>(&entry);
    const bool relu = eltwise != nullptr && eltwise->op.function == EltwiseAlgorithm::kRelu;
    if (!relu || entries.size() > 1) {
      return Unimplemented("takes one relu at most, got ", request.attributes.post_ops.ToString());
    }
  }
  if (HasAddend(desc)) ABSL_RETURN_IF_ERROR(RequireF32(desc.addend));
  return WithDst(desc, OrLayoutOf(desc.dst, desc.src));
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(
    const Request<BatchNormalizationDesc>& request) {
  const BatchNormalizationDesc& desc = request.desc;
  const auto compute =
      [formula = Formula(desc, PostOpsOf(desc, request.attributes))](const ReferencePiece& piece) {
        piece.ForEach([&](const Dims& group) { formula.RunChannels(piece, group[0]); });
      };
  Dims operations = desc.src.dims();
  operations[1] = std::min(operations[1], kChannelsOfBits);
  return CreateReferencePrimitive(InfoOf(request),
                                  {{DivUp(desc.src.dim(1), kChannelsOfBits)}, operations}, compute);
}

}  // namespace tilewire::batch_normalization
