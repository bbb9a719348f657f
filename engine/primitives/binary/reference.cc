// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one element after the other.
#include <cmath>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/kernels/scalar_epilogue.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/separable_offsets.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/binary/implementations.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/layout.h"

namespace tilewire::binary {
namespace {

float Apply(BinaryAlgorithm algorithm, float x, float y) {
  switch (algorithm) {
    case BinaryAlgorithm::kAdd:
      return x + y;
    case BinaryAlgorithm::kMul:
      return x * y;
    case BinaryAlgorithm::kMax:
      return std::isnan(x) || x > y ? x : y;
    case BinaryAlgorithm::kMin:
      return std::isnan(x) || x < y ? x : y;
    case BinaryAlgorithm::kDiv:
      return x / y;
    case BinaryAlgorithm::kSub:
      return x - y;
  }
  return x;
}

// Immutable.
class Reference final : public Primitive {
 public:
  Reference(PrimitiveInfo info, const BinaryDesc& desc, const PostOps& post_ops)
      : Primitive(std::move(info)),
        desc_(desc),
        post_ops_(post_ops),
        src0_(desc.src0),
        src1_(desc.src1),
        dst_(desc.dst) {}

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    // One piece: denormals are flushed as everywhere.
    team.ParallelFor(1, [&](int64_t) { RunAll(args); });
    ZeroPadding(desc_.dst, args.Find(kArgDst));
  }

  void RunAll(const ExecuteArgs& args) const {
    const float* src0 = args.Get<const float>(kArgSrc);
    const float* src1 = args.Get<const float>(kArgSrc1);
    float* dst = args.Get<float>(kArgDst);
    ForEachIndex(desc_.dst.dims(), [&](const Dims& index) {
      Dims other = index;
      for (int d = 0; d < desc_.src1.rank(); ++d) {
        if (desc_.src1.dim(d) == 1) other[d] = 0;
      }
      const float value =
          Apply(desc_.algorithm, src0[src0_.Offset(index)], src1[src1_.Offset(other)]);
      float& result = dst[dst_.Offset(index)];
      result = ApplyPostOps(post_ops_, value, result);
    });
  }

  const BinaryDesc desc_;
  const PostOps post_ops_;
  const SeparableOffsets src0_, src1_, dst_;
};

}  // namespace

absl::StatusOr<BinaryDesc> ResolveReference(const BinaryDesc& desc, const Attributes& attributes,
                                            const ImplementationFacts&) {
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src0, desc.src1, desc.dst));
  ABSL_RETURN_IF_ERROR(RequireNoOutputScales(attributes));
  BinaryDesc resolved = desc;
  ABSL_ASSIGN_OR_RETURN(resolved.dst, OrLayoutOf(desc.dst, desc.src0));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const BinaryDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts) {
  return std::make_unique<Reference>(InfoOf(desc, attributes, facts), desc, attributes.post_ops);
}

}  // namespace tilewire::binary
