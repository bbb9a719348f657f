// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one element of dst after the other.
#include "engine/base/status_macros.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/elementwise/implementations.h"
#include "engine/primitives/layout.h"

namespace tilewire::elementwise {
namespace {

// Immutable.
class Reference final : public Primitive {
 public:
  Reference(PrimitiveInfo info, const ElementwiseDesc& desc)
      : Primitive(std::move(info)), desc_(desc) {}

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    // One piece: denormals are flushed as everywhere.
    team.ParallelFor(1, [&](int64_t) { RunAll(args); });
    ZeroPadding(desc_.dst, args.Find(kArgDst));
  }

  void RunAll(const ExecuteArgs& args) const {
    float* dst = args.Get<float>(kArgDst);
    ForEachIndex(desc_.dst.dims(), [&](const Dims& index) {
      float x[3] = {};
      for (size_t s = 0; s < desc_.srcs.size(); ++s) {
        const MemoryDesc& src = desc_.srcs[s];
        Dims from = index;
        for (int d = 0; d < src.rank(); ++d) from[d] = src.dim(d) == 1 ? 0 : index[d];
        x[s] = args.Get<const float>(kArgMultipleSrc + static_cast<int>(s))[src.Offset(from)];
      }
      dst[desc_.dst.Offset(index)] = jit::Evaluate(desc_.function, x);
    });
  }

  const ElementwiseDesc desc_;
};

}  // namespace

absl::StatusOr<ElementwiseDesc> ResolveReference(const ElementwiseDesc& desc,
                                                 const Attributes& attributes,
                                                 const ImplementationFacts&) {
  ABSL_RETURN_IF_ERROR(RequireF32(desc.dst));
  for (const MemoryDesc& src : desc.srcs) ABSL_RETURN_IF_ERROR(RequireF32(src));
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(attributes));
  ElementwiseDesc resolved = desc;
  ABSL_ASSIGN_OR_RETURN(resolved.dst, OrPlain(desc.dst));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const ElementwiseDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts) {
  return std::make_unique<Reference>(
      BasicInfo(facts, PrimitiveKind::kElementwise, ArgsOf(desc.srcs, desc.dst), attributes), desc);
}

}  // namespace tilewire::elementwise
