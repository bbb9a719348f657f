// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one element after the other.
#include "engine/base/status_macros.h"
#include "engine/kernels/element_conversion.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/integer_sum/arithmetic.h"
#include "engine/primitives/integer_sum/implementations.h"
#include "engine/primitives/layout.h"

namespace tilewire::integer_sum {
namespace {

// Immutable.
class Reference final : public Primitive {
 public:
  Reference(PrimitiveInfo info, const IntegerSumDesc& desc)
      : Primitive(std::move(info)), desc_(desc) {}

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    // One piece: denormals are flushed as everywhere.
    team.ParallelFor(1, [&](int64_t) { RunAll(args); });
    ZeroPadding(desc_.dst, args.Find(kArgDst));
  }

  void RunAll(const ExecuteArgs& args) const {
    const MemoryDesc& dst = desc_.dst;
    ForEachIndex(dst.dims(), [&](const Dims& index) {
      float real = 0;
      for (size_t i = 0; i < desc_.srcs.size(); ++i) {
        const MemoryDesc& src = desc_.srcs[i];
        const float integer = LoadElement(
            src.data_type(), args.Find(kArgMultipleSrc + static_cast<int>(i)), src.Offset(index));
        const float term = RealOf(integer, desc_.scales[i], desc_.zero_points[i]);
        real = i == 0 ? term : real + term;
      }
      if (desc_.relu && !(real > 0)) real = 0;
      StoreElement(dst.data_type(),
                   IntegerOf(real, desc_.dst_scale, desc_.dst_zero_point, dst.data_type()),
                   args.Find(kArgDst), dst.Offset(index));
    });
  }

  const IntegerSumDesc desc_;
};

}  // namespace

absl::StatusOr<IntegerSumDesc> ResolveReference(const IntegerSumDesc& desc,
                                                const Attributes& attributes,
                                                const ImplementationFacts&) {
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(attributes));
  for (const MemoryDesc& src : desc.srcs) {
    if (!IsByte(src.data_type()))
      return absl::UnimplementedError(absl::StrCat("does not add up ", src.ToString()));
  }
  if (!IsByte(desc.dst.data_type()))
    return absl::UnimplementedError(absl::StrCat("does not write ", desc.dst.ToString()));
  IntegerSumDesc resolved = desc;
  if (desc.dst.IsAny()) {
    ABSL_ASSIGN_OR_RETURN(const MemoryDesc like, desc.srcs[0].WithDataType(desc.dst.data_type()));
    ABSL_ASSIGN_OR_RETURN(resolved.dst, OrLayoutOf(desc.dst, like));
  }
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const IntegerSumDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts) {
  return std::make_unique<Reference>(
      BasicInfo(facts, PrimitiveKind::kIntegerSum, ArgsOf(desc.srcs, desc.dst), attributes), desc);
}

}  // namespace tilewire::integer_sum
