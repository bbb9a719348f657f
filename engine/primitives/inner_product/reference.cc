// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts; f32 products are added in the order of channel, then
// spatial index; sums of integers are exact, modulo 2^32.
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/kernels/scalar_epilogue.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/separable_offsets.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/inner_product/implementations.h"
#include "engine/primitives/layout.h"

namespace tilewire::inner_product {
namespace {

// Immutable.
class Reference final : public Primitive {
 public:
  Reference(PrimitiveInfo info, const InnerProductDesc& desc, const Attributes& attributes)
      : Primitive(std::move(info)),
        image_(desc.src.dims()),
        src_type_(desc.src.data_type()),
        epilogue_{attributes, desc.bias.data_type(), desc.dst.data_type()},
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
    void* dst = args.Find(kArgDst);
    const bool has_bias = epilogue_.bias_type != DataType::kUndef;
    team.ParallelFor(dst_desc_.ElementCount(), [&](int64_t i) {
      const int64_t n = i / channels, oc = i % channels;
      epilogue_.Store(Sum(args, n, oc), oc, args.Find(kArgBias), has_bias ? bias_.Offset({oc}) : 0,
                      dst, dst_.Offset({n, oc}));
    });
    ZeroPadding(dst_desc_, dst);
  }

  float Sum(const ExecuteArgs& args, int64_t n, int64_t oc) const {
    switch (src_type_) {
      case DataType::kU8:
        return static_cast<int32_t>(Accumulate<uint8_t, int8_t, uint32_t>(args, n, oc));
      case DataType::kS8:
        return static_cast<int32_t>(Accumulate<int8_t, int8_t, uint32_t>(args, n, oc));
      default:
        return Accumulate<float, float, float>(args, n, oc);
    }
  }

  template <typename Src, typename Weights, typename Result>
  Result Accumulate(const ExecuteArgs& args, int64_t n, int64_t oc) const {
    const Src* src = args.Get<const Src>(kArgSrc) + src_.At(0, n);
    const Weights* weights = args.Get<const Weights>(kArgWeights) + weights_.At(0, oc);
    Result sum = 0;
    ForEachIndex(image_, [&](const Dims& index) {
      sum += src[src_.Offset(index)] * weights[weights_.Offset(index)];
    });
    return sum;
  }

  Dims image_;  // the dims of one image: src's, with batch 1
  const DataType src_type_;
  const ScalarEpilogue epilogue_;
  const SeparableOffsets src_, weights_, bias_, dst_;
  const MemoryDesc dst_desc_;
};

}  // namespace

absl::StatusOr<InnerProductDesc> ResolveReference(const InnerProductDesc& desc,
                                                  const Attributes& attributes,
                                                  const ImplementationFacts&) {
  ABSL_RETURN_IF_ERROR(IsInteger(desc) ? RequireForwardInteger(desc)
                                       : RequireForwardF32(desc, attributes));
  InnerProductDesc resolved = desc;
  for (MemoryDesc* tensor : {&resolved.src, &resolved.weights, &resolved.bias, &resolved.dst}) {
    ABSL_ASSIGN_OR_RETURN(*tensor, OrPlain(*tensor));
  }
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const InnerProductDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts) {
  return std::make_unique<Reference>(
      BasicInfo(facts, PrimitiveKind::kInnerProduct,
                ArgsOf(desc.src, desc.weights, desc.bias, desc.dst), attributes),
      desc, attributes);
}

}  // namespace tilewire::inner_product
