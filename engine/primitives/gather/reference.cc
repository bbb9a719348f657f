// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one element of dst after the other.
#include <algorithm>

#include "engine/base/status_macros.h"
#include "engine/kernels/element_conversion.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/gather/implementations.h"
#include "engine/primitives/gather/indices.h"
#include "engine/primitives/layout.h"

namespace tilewire::gather {
namespace {

// Immutable.
class Reference final : public Primitive {
 public:
  Reference(PrimitiveInfo info, const GatherDesc& desc) : Primitive(std::move(info)), desc_(desc) {}

 private:
  absl::Status CheckElements(const ExecuteArgs& args) const override {
    return CheckIndices(desc_, args.Get<const float>(kArgSrc1));
  }

  void Run(const ExecuteArgs& args, std::byte*, const threading::Team&) const override {
    const MemoryDesc &src = desc_.src, &dst = desc_.dst;
    const auto* indices = args.Get<const float>(kArgSrc1);
    const int axis = desc_.axis, taken = desc_.indices.rank();
    ForEachIndex(dst.dims(), [&](const Dims& index) {
      const Dims which(index.begin() + axis, index.begin() + axis + taken);
      const int64_t at = PlaceOfIndex(indices[desc_.indices.Offset(which)], src.dim(axis));
      Dims from(index.begin(), index.begin() + axis);
      from.push_back(std::max<int64_t>(0, at));  // CheckElements() has seen it
      from.insert(from.end(), index.begin() + axis + taken, index.end());
      CopyElement(src.data_type(), args.Find(kArgSrc), src.Offset(from), args.Find(kArgDst),
                  dst.Offset(index));
    });
    ZeroPadding(dst, args.Find(kArgDst));
  }

  const GatherDesc desc_;
};

}  // namespace

absl::StatusOr<GatherDesc> ResolveReference(const GatherDesc& desc, const Attributes& attributes,
                                            const ImplementationFacts&) {
  ABSL_RETURN_IF_ERROR(RequireF32(desc.indices));
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(attributes));
  GatherDesc resolved = desc;
  ABSL_ASSIGN_OR_RETURN(resolved.dst, OrPlain(desc.dst));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const GatherDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts) {
  return std::make_unique<Reference>(InfoOf(desc, attributes, facts), desc);
}

}  // namespace tilewire::gather
