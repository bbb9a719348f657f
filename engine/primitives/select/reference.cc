// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layout, one element of dst after the other.
#include "engine/base/status_macros.h"
#include "engine/kernels/element_conversion.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/layout.h"
#include "engine/primitives/select/implementations.h"

namespace tilewire::select {
namespace {

// Immutable.
class Reference final : public Primitive {
 public:
  Reference(PrimitiveInfo info, const SelectDesc& desc)
      : Primitive(std::move(info)), src_(desc.src), dst_(desc.dst), fill_(desc.fill) {
    for (int d = 0; d < dst_.rank(); ++d) from_.push_back(SourceIndices(desc, d));
  }

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team&) const override {
    const DataType type = dst_.data_type();
    void* dst = args.Find(kArgDst);
    ForEachIndex(dst_.dims(), [&](const Dims& index) {
      Dims from = index;
      bool is_fill = false;
      for (int d = 0; d < dst_.rank(); ++d) {
        from[d] = from_[d][index[d]];
        is_fill = is_fill || from[d] == kFill;
      }
      if (is_fill) return StoreElement(type, fill_, dst, dst_.Offset(index));
      CopyElement(type, args.Find(kArgSrc), src_.Offset(from), dst, dst_.Offset(index));
    });
    ZeroPadding(dst_, dst);
  }

  const MemoryDesc src_, dst_;
  const float fill_;
  std::vector<std::vector<int64_t>> from_;  // by index of dst, one list per dimension
};

}  // namespace

absl::StatusOr<SelectDesc> ResolveReference(const SelectDesc& desc, const Attributes& attributes,
                                            const ImplementationFacts&) {
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(attributes));
  SelectDesc resolved = desc;
  ABSL_ASSIGN_OR_RETURN(resolved.dst, OrLayoutOf(desc.dst, desc.src));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const SelectDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts) {
  return std::make_unique<Reference>(
      BasicInfo(facts, PrimitiveKind::kSelect, ArgsOf(desc.src, desc.dst), attributes), desc);
}

}  // namespace tilewire::select
