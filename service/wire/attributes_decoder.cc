// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "service/wire/primitive_decoder.h"

namespace tilewire::service {

absl::StatusOr<EltwiseOp> DecodeEltwiseOp(const v1::EltwiseOp& message) {
  if (message.algorithm() < v1::ELTWISE_RELU || message.algorithm() > v1::EltwiseAlgorithm_MAX) {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown eltwise algorithm ", static_cast<int>(message.algorithm()),
                     "; allowed are ", v1::ELTWISE_RELU, " to ", v1::EltwiseAlgorithm_MAX));
  }
  for (const auto& [name, number] :
       {std::pair{"alpha", message.alpha()}, {"beta", message.beta()}}) {
    if (std::isnan(number))
      return absl::InvalidArgumentError(absl::StrCat("eltwise: ", name, " is not a number"));
  }
  return EltwiseOp{static_cast<EltwiseAlgorithm>(message.algorithm() - v1::ELTWISE_RELU),
                   message.alpha(), message.beta()};
}

absl::StatusOr<Attributes> DecodeAttributes(const v1::Attributes& message) {
  Attributes attributes;
  attributes.scratchpad_mode = ScratchpadMode::kUser;
  for (const v1::PostOp& post_op : message.post_ops()) {
    switch (post_op.kind_case()) {
      case v1::PostOp::kEltwise: {
        ABSL_ASSIGN_OR_RETURN(const EltwiseOp op, DecodeEltwiseOp(post_op.eltwise().op()));
        const float scale = post_op.eltwise().has_scale() ? post_op.eltwise().scale() : 1;
        ABSL_RETURN_IF_ERROR(attributes.post_ops.Append(EltwisePostOp{op, scale}));
        break;
      }
      case v1::PostOp::kSum: {
        const float scale = post_op.sum().has_scale() ? post_op.sum().scale() : 1;
        ABSL_RETURN_IF_ERROR(attributes.post_ops.Append(SumPostOp{scale}));
        break;
      }
      case v1::PostOp::kMaxPooling:
        ABSL_RETURN_IF_ERROR(attributes.post_ops.Append(MaxPoolingPostOp{}));
        break;
      case v1::PostOp::kMask:
        ABSL_RETURN_IF_ERROR(attributes.post_ops.Append(MaskPostOp{post_op.mask().alpha()}));
        break;
      case v1::PostOp::KIND_NOT_SET:
        return absl::InvalidArgumentError(
            "a post-op is neither eltwise nor sum nor max pooling nor mask");
    }
  }
  if (message.has_output_scales()) {
    attributes.output_scales.mask = message.output_scales().mask();
    attributes.output_scales.scales.assign(message.output_scales().scales().begin(),
                                           message.output_scales().scales().end());
  }
  if (message.precision() < 0 || message.precision() > v1::Precision_MAX) {
    return absl::InvalidArgumentError(absl::StrCat("unknown precision ",
                                                   static_cast<int>(message.precision()),
                                                   "; allowed are: exact, fast, bf16"));
  }
  attributes.precision = static_cast<Precision>(message.precision());
  return attributes;
}

}  // namespace tilewire::service
