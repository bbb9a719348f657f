// SPDX-License-Identifier: Apache-2.0
//
// The executable specification of backward: any layouts, one channel after the other, in double.
#include <cmath>

#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/batch_normalization/implementations.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/gradients.h"
#include "engine/primitives/reference_primitive.h"

namespace tilewire::batch_normalization {
namespace {

// Immutable.
class Gradient {
 public:
  explicit Gradient(const BatchNormalizationDesc& desc)
      : desc_(desc),
        channel_(desc.src.dims()),
        src_(desc.src),
        diff_src_(desc.diff_src),
        diff_dst_(desc.diff_dst),
        addend_(HasAddend(desc) ? desc.addend : desc.src) {
    channel_[1] = 1;
  }

  void RunChannel(const ReferencePiece& piece, int64_t c) const {
    const ChannelParameters parameters = ParametersOf(desc_, piece.args());
    const double mean = parameters.mean[c];
    const double r = 1 / std::sqrt(static_cast<double>(parameters.variance[c]) + desc_.epsilon);
    const double factor = r * (parameters.scale == nullptr ? 1 : parameters.scale[c]);
    const double count = static_cast<double>(*ElementCount(channel_));
    double diff_scale = 0, diff_shift = 0;
    float* const of_addend =
        HasAddend(desc_) ? piece.Get<float>(kArgDiffSrc1) + addend_.At(1, c) : nullptr;
    float* const diff_src = piece.Get<float>(kArgDiffSrc) + diff_src_.At(1, c);
    ForEachElement(piece, c, [&](double x, float gradient, const Dims& index) {
      diff_scale += gradient * ((x - mean) * r);
      diff_shift += gradient;
      if (of_addend != nullptr) of_addend[addend_.Offset(index)] = gradient;
    });
    ForEachElement(piece, c, [&](double x, double gradient, const Dims& index) {
      if (!desc_.use_global_stats)
        gradient -= diff_shift / count + (x - mean) * r * diff_scale / count;
      diff_src[diff_src_.Offset(index)] = static_cast<float>(factor * gradient);
    });
    if (auto* diff_weights = piece.Get<float>(kArgDiffWeights); diff_weights != nullptr) {
      diff_weights[c] = static_cast<float>(diff_scale);
      diff_weights[desc_.src.dim(1) + c] = static_cast<float>(diff_shift);
    }
  }

 private:
  // Calls visit(src, the gradient that relu let through, index) in row-major order.
  template <typename Visit>
  void ForEachElement(const ReferencePiece& piece, int64_t c, Visit visit) const {
    const float* src = piece.Get<const float>(kArgSrc) + src_.At(1, c);
    const float* diff_dst = piece.Get<const float>(kArgDiffDst) + diff_dst_.At(1, c);
    const uint8_t* byte = desc_.fuse_relu
                              ? piece.Get<const uint8_t>(kArgWorkspace) + ByteOfChannel(desc_, c)
                              : nullptr;
    ForEachOperation(channel_, [&](const Dims& index) {
      const bool passes = byte == nullptr || (*byte >> c % 8 & 1) != 0;
      visit(src[src_.Offset(index)], passes ? diff_dst[diff_dst_.Offset(index)] : 0.0f, index);
      if (byte != nullptr) byte += kBytesOfPixel;
    });
  }

  const BatchNormalizationDesc desc_;
  Dims channel_;  // src's dims with one channel
  const SeparableOffsets src_, diff_src_, diff_dst_, addend_;
};

}  // namespace

absl::StatusOr<BatchNormalizationDesc> ResolveReferenceBackward(
    const Request<BatchNormalizationDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(BatchNormalizationDesc resolved,
                        ResolveF32Gradients(request, request.desc.src));
  if (HasAddend(resolved)) {
    ABSL_ASSIGN_OR_RETURN(resolved.addend, OrLayoutOf(resolved.addend, resolved.src));
  }
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReferenceBackward(
    const Request<BatchNormalizationDesc>& request) {
  const BatchNormalizationDesc& desc = request.desc;
  const auto compute = [gradient = Gradient(desc)](const ReferencePiece& piece) {
    piece.ForEach([&](const Dims& channel) { gradient.RunChannel(piece, channel[0]); });
  };
  return CreateReferencePrimitive(BackwardInfoOf(request),
                                  {{desc.src.dim(1)}, LinesAlong(desc.src.dims(), 1)}, compute);
}

}  // namespace tilewire::batch_normalization
