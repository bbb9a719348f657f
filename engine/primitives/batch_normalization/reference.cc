// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one channel after the other; statistics in double.
#include <algorithm>
#include <cmath>
#include <variant>

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
        dst_(desc.dst) {
    channel_[1] = 1;
  }

  void RunChannel(const ReferencePiece& piece, int64_t c) const {
    const ChannelParameters parameters = ParametersOf(desc_, piece.args());
    uint8_t* bits =
        SavesBits(desc_) ? piece.Get<uint8_t>(kArgWorkspace) + c * BytesOfChannel(desc_) : nullptr;
    if (bits != nullptr) std::fill_n(bits, BytesOfChannel(desc_), uint8_t{0});
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
    int64_t i = 0;
    ForEachOperation(channel_, [&](const Dims& index) {
      const auto value = static_cast<float>(scale * (src[src_.Offset(index)] - mean) + shift);
      if (bits != nullptr && value <= 0) bits[i / 8] |= static_cast<uint8_t>(1 << i % 8);
      dst[dst_.Offset(index)] = ApplyPostOps(post_ops_, value, 0);
      ++i;
    });
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
  const SeparableOffsets src_, dst_;
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
  return WithDst(desc, OrLayoutOf(desc.dst, desc.src));
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(
    const Request<BatchNormalizationDesc>& request) {
  const BatchNormalizationDesc& desc = request.desc;
  const auto compute =
      [formula = Formula(desc, PostOpsOf(desc, request.attributes))](const ReferencePiece& piece) {
        piece.ForEach([&](const Dims& channel) { formula.RunChannel(piece, channel[0]); });
      };
  return CreateReferencePrimitive(InfoOf(request),
                                  {{desc.src.dim(1)}, LinesAlong(desc.src.dims(), 1)}, compute);
}

}  // namespace tilewire::batch_normalization
