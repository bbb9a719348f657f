// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts; products are added in the order of channel, then
// spatial index.
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/separable_offsets.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/inner_product/implementations.h"
#include "engine/primitives/layout.h"
#include "engine/primitives/scalar_epilogue.h"

namespace tilewire::inner_product {
namespace {

// Immutable.
class Reference final : public Primitive {
 public:
  Reference(PrimitiveInfo info, const InnerProductDesc& desc, const PostOps& post_ops)
      : Primitive(std::move(info)),
        image_(desc.src.dims()),
        post_ops_(post_ops),
        has_bias_(!desc.bias.IsZero()),
        src_(desc.src),
        weights_(desc.weights),
        bias_(desc.bias),
        dst_(desc.dst),
        dst_desc_(desc.dst) {
    image_[0] = 1;
  }

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const int64_t channels = dst_desc_.dim(1);
    float* dst = args.Get<float>(kArgDst);
    team.ParallelFor(dst_desc_.ElementCount(), [&](int64_t i) {
      const int64_t n = i / channels, oc = i % channels;
      float value = Accumulate(args, n, oc);
      if (has_bias_) value += args.Get<const float>(kArgBias)[bias_.Offset({oc})];
      float& result = dst[dst_.Offset({n, oc})];
      result = ApplyPostOps(post_ops_, value, result);
    });
    ZeroPadding(dst_desc_, dst);
  }

  float Accumulate(const ExecuteArgs& args, int64_t n, int64_t oc) const {
    const float* src = args.Get<const float>(kArgSrc) + src_.At(0, n);
    const float* weights = args.Get<const float>(kArgWeights) + weights_.At(0, oc);
    float sum = 0;
    ForEachIndex(image_, [&](const Dims& index) {
      sum += src[src_.Offset(index)] * weights[weights_.Offset(index)];
    });
    return sum;
  }

  Dims image_;  // the dims of one image: src's, with batch 1
  const PostOps post_ops_;
  const bool has_bias_;
  const SeparableOffsets src_, weights_, bias_, dst_;
  const MemoryDesc dst_desc_;
};

}  // namespace

absl::StatusOr<InnerProductDesc> ResolveReference(const InnerProductDesc& desc,
                                                  const Attributes& attributes) {
  ABSL_RETURN_IF_ERROR(RequireForwardF32(desc, attributes));
  InnerProductDesc resolved = desc;
  for (MemoryDesc* tensor : {&resolved.src, &resolved.weights, &resolved.bias, &resolved.dst}) {
    ABSL_ASSIGN_OR_RETURN(*tensor, OrPlain(*tensor));
  }
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const InnerProductDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name) {
  return std::make_unique<Reference>(
      BasicInfo(name, PrimitiveKind::kInnerProduct,
                ArgsOf(desc.src, desc.weights, desc.bias, desc.dst), attributes),
      desc, attributes.post_ops);
}

}  // namespace tilewire::inner_product
