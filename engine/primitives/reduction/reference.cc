// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one element of dst after the other; sums and products
// in double.
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/separable_offsets.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/layout.h"
#include "engine/primitives/reduction/combination.h"
#include "engine/primitives/reduction/implementations.h"

namespace tilewire::reduction {
namespace {

// Immutable.
class Reference final : public Primitive {
 public:
  Reference(PrimitiveInfo info, const ReductionDesc& desc)
      : Primitive(std::move(info)), desc_(desc), src_(desc.src), dst_(desc.dst) {
    for (int d = 0; d < desc.src.rank(); ++d) {
      reduced_.push_back(desc.dst.dim(d) == 1 ? desc.src.dim(d) : 1);
    }
  }

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    // One piece: denormals are flushed as everywhere.
    team.ParallelFor(1, [&](int64_t) { RunAll(args); });
    ZeroPadding(desc_.dst, args.Find(kArgDst));
  }

  void RunAll(const ExecuteArgs& args) const {
    const float* src = args.Get<const float>(kArgSrc);
    float* dst = args.Get<float>(kArgDst);
    ForEachIndex(desc_.dst.dims(), [&](const Dims& index) {
      double result = NeutralElement(desc_.algorithm);
      ForEachIndex(reduced_, [&](Dims at) {
        for (size_t d = 0; d < at.size(); ++d) at[d] += index[d];
        result = Combine(desc_, result, src[src_.Offset(at)]);
      });
      dst[dst_.Offset(index)] = static_cast<float>(FinishCombination(desc_, result));
    });
  }

  const ReductionDesc desc_;
  Dims reduced_;  // the box of src that falls on one element of dst
  const SeparableOffsets src_, dst_;
};

}  // namespace

absl::StatusOr<ReductionDesc> ResolveReference(const ReductionDesc& desc,
                                               const Attributes& attributes,
                                               const ImplementationFacts&) {
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src, desc.dst));
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(attributes));
  ReductionDesc resolved = desc;
  ABSL_ASSIGN_OR_RETURN(resolved.dst, OrLayoutOf(desc.dst, desc.src));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const ReductionDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts) {
  return std::make_unique<Reference>(InfoOf(desc, attributes, facts), desc);
}

}  // namespace tilewire::reduction
