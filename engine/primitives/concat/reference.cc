// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts and types, one element after the other.
#include <cstring>

#include "engine/base/status_macros.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/separable_offsets.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/concat/implementations.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/layout.h"

namespace tilewire::concat {
namespace {

// Immutable.
class Reference final : public Primitive {
 public:
  Reference(PrimitiveInfo info, const ConcatDesc& desc)
      : Primitive(std::move(info)),
        axis_(desc.axis),
        element_bytes_(SizeOf(desc.dst.data_type())),
        dst_desc_(desc.dst),
        dst_(desc.dst) {
    for (const MemoryDesc& src : desc.srcs) srcs_.push_back({src.dims(), SeparableOffsets(src)});
  }

 private:
  struct Source {
    Dims dims;
    SeparableOffsets offsets;
  };

  void Run(const ExecuteArgs& args, std::byte*, const threading::Team&) const override {
    std::byte* dst = args.Get<std::byte>(kArgDst);
    int64_t before = 0;  // sizes on the axis of the sources already copied
    for (size_t i = 0; i < srcs_.size(); ++i) {
      const std::byte* src = args.Get<const std::byte>(kArgMultipleSrc + static_cast<int>(i));
      ForEachIndex(srcs_[i].dims, [&](const Dims& index) {
        Dims to = index;
        to[axis_] += before;
        std::memcpy(dst + dst_.Offset(to) * element_bytes_,
                    src + srcs_[i].offsets.Offset(index) * element_bytes_, element_bytes_);
      });
      before += srcs_[i].dims[axis_];
    }
    ZeroPadding(dst_desc_, dst);
  }

  const int axis_;
  const int64_t element_bytes_;
  const MemoryDesc dst_desc_;
  const SeparableOffsets dst_;
  std::vector<Source> srcs_;
};

}  // namespace

absl::StatusOr<ConcatDesc> ResolveReference(const ConcatDesc& desc, const Attributes& attributes,
                                            const ImplementationFacts&) {
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(attributes));
  ConcatDesc resolved = desc;
  ABSL_ASSIGN_OR_RETURN(resolved.dst, OrLayoutOf(desc.dst, desc.srcs[0]));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const ConcatDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts) {
  return std::make_unique<Reference>(
      BasicInfo(facts, PrimitiveKind::kConcat, ArgsOf(desc.srcs, desc.dst), attributes), desc);
}

}  // namespace tilewire::concat
