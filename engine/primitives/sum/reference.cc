// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts and types, one element after the other, added in f32.
#include "engine/base/status_macros.h"
#include "engine/kernels/element_conversion.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/separable_offsets.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/layout.h"
#include "engine/primitives/sum/implementations.h"

namespace tilewire::sum {
namespace {

// Immutable.
class Reference final : public Primitive {
 public:
  Reference(PrimitiveInfo info, const SumDesc& desc)
      : Primitive(std::move(info)), scales_(desc.scales), dst_desc_(desc.dst), dst_(desc.dst) {
    for (const MemoryDesc& src : desc.srcs) srcs_.emplace_back(src);
  }

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team&) const override {
    void* dst = args.Get<void>(kArgDst);
    const DataType type = dst_desc_.data_type();
    ForEachIndex(dst_desc_.dims(), [&](const Dims& index) {
      float total = 0;
      for (size_t i = 0; i < srcs_.size(); ++i) {
        const void* src = args.Get<const void>(kArgMultipleSrc + static_cast<int>(i));
        const float term = scales_[i] * LoadElement(type, src, srcs_[i].Offset(index));
        total = i == 0 ? term : total + term;
      }
      StoreElement(type, total, dst, dst_.Offset(index));
    });
    ZeroPadding(dst_desc_, dst);
  }

  const std::vector<float> scales_;
  const MemoryDesc dst_desc_;
  const SeparableOffsets dst_;
  std::vector<SeparableOffsets> srcs_;
};

}  // namespace

absl::StatusOr<SumDesc> ResolveReference(const SumDesc& desc, const Attributes& attributes,
                                         const ImplementationFacts&) {
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(attributes));
  SumDesc resolved = desc;
  ABSL_ASSIGN_OR_RETURN(resolved.dst, OrLayoutOf(desc.dst, desc.srcs[0]));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const SumDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts) {
  return std::make_unique<Reference>(
      BasicInfo(facts, PrimitiveKind::kSum, ArgsOf(desc.srcs, desc.dst), attributes), desc);
}

}  // namespace tilewire::sum
