// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layout and type, one element after the other.
#include <cstring>

#include "engine/base/status_macros.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/separable_offsets.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/layout.h"
#include "engine/primitives/shuffle/implementations.h"

namespace tilewire::shuffle {
namespace {

// Immutable.
class Reference final : public Primitive {
 public:
  Reference(PrimitiveInfo primitive_info, const ShuffleDesc& desc)
      : Primitive(std::move(primitive_info)),
        axis_(desc.axis),
        element_bytes_(SizeOf(desc.src.data_type())),
        source_(SourceIndices(desc)),
        src_(desc.src),
        dst_(desc.dst),
        dst_desc_(desc.dst) {}

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team&) const override {
    const std::byte* src = args.Get<const std::byte>(info().args[0].arg);
    std::byte* dst = args.Get<std::byte>(info().args[1].arg);
    ForEachIndex(dst_desc_.dims(), [&](const Dims& index) {
      Dims from = index;
      from[axis_] = source_[index[axis_]];
      std::memcpy(dst + dst_.Offset(index) * element_bytes_,
                  src + src_.Offset(from) * element_bytes_, element_bytes_);
    });
    ZeroPadding(dst_desc_, dst);
  }

  const int axis_;
  const int64_t element_bytes_;
  const std::vector<int64_t> source_;
  const SeparableOffsets src_, dst_;
  const MemoryDesc dst_desc_;
};

}  // namespace

absl::StatusOr<ShuffleDesc> ResolveReference(const ShuffleDesc& desc, const Attributes& attributes,
                                             const ImplementationFacts&) {
  if (desc.prop_kind == PropKind::kBackwardData) ABSL_RETURN_IF_ERROR(RequireF32(desc.src));
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(attributes));
  ShuffleDesc resolved = desc;
  ABSL_ASSIGN_OR_RETURN(resolved.dst, OrLayoutOf(desc.dst, desc.src));
  if (resolved.dst != desc.src) return absl::UnimplementedError("layouts of src and dst differ");
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const ShuffleDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts) {
  return std::make_unique<Reference>(InfoOf(desc, attributes, facts), desc);
}

}  // namespace tilewire::shuffle
