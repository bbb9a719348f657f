// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one element of dst after the other.
#include "engine/base/status_macros.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/interpolate/implementations.h"
#include "engine/primitives/layout.h"

namespace tilewire::interpolate {
namespace {

// Immutable.
class Reference final : public Primitive {
 public:
  Reference(PrimitiveInfo info, const InterpolateDesc& desc)
      : Primitive(std::move(info)), desc_(desc) {}

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
      const int64_t first = index[desc_.axis] * desc_.taps;
      float sum = 0;
      for (int64_t t = first; t < first + desc_.taps; ++t) {
        Dims from = index;
        from[desc_.axis] = desc_.indices[t];
        sum += desc_.weights[t] * src[desc_.src.Offset(from)];
      }
      dst[desc_.dst.Offset(index)] = sum;
    });
  }

  const InterpolateDesc desc_;
};

}  // namespace

absl::StatusOr<InterpolateDesc> ResolveReference(const InterpolateDesc& desc,
                                                 const Attributes& attributes,
                                                 const ImplementationFacts&) {
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src, desc.dst));
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(attributes));
  InterpolateDesc resolved = desc;
  ABSL_ASSIGN_OR_RETURN(resolved.dst, OrLayoutOf(desc.dst, desc.src));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const InterpolateDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts) {
  return std::make_unique<Reference>(
      BasicInfo(facts, PrimitiveKind::kInterpolate, ArgsOf(desc.src, desc.dst), attributes), desc);
}

}  // namespace tilewire::interpolate
