// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: reorder.h's formula for one element after the other, any layout,
// any type.
#include <utility>
#include <variant>

#include "engine/base/status_macros.h"
#include "engine/kernels/element_conversion.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reorder/implementations.h"

namespace tilewire::reorder {
namespace {

// Immutable.
class Reference final : public Primitive {
 public:
  Reference(PrimitiveInfo info, const ReorderDesc& desc, const Attributes& attributes)
      : Primitive(std::move(info)),
        src_(desc.src),
        dst_(desc.dst),
        scales_(attributes.output_scales),
        adds_(!attributes.post_ops.empty()),
        sum_scale_(adds_ ? std::get<SumPostOp>(attributes.post_ops.entries()[0]).scale : 0),
        copies_(RequirePlainCopy(desc, attributes).ok()) {}

 private:
  static constexpr int64_t kElementsAtOnce = 4096;

  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const void* src = args.Get<const void>(kArgSrc);
    void* dst = args.Get<void>(kArgDst);
    const int64_t count = dst_.ElementCount();
    team.ParallelFor(DivUp(count, kElementsAtOnce), [&](int64_t part) {
      RunPart(src, dst, part * kElementsAtOnce, std::min(count, (part + 1) * kElementsAtOnce));
    });
    ZeroPadding(dst_, dst);
  }

  // Elements [begin, end) in logical order.
  void RunPart(const void* src, void* dst, int64_t begin, int64_t end) const {
    Dims index(dst_.rank(), 0);
    for (int64_t d = dst_.rank() - 1, rest = begin; d >= 0; --d) {
      index[d] = rest % dst_.dim(d);
      rest /= dst_.dim(d);
    }
    for (int64_t i = begin; i < end; ++i) {
      RunElement(src, dst, index);
      for (int d = dst_.rank() - 1; d >= 0 && ++index[d] == dst_.dim(d); --d) index[d] = 0;
    }
  }

  void RunElement(const void* src, void* dst, const Dims& index) const {
    const int64_t from = src_.Offset(index), to = dst_.Offset(index);
    if (copies_) return CopyElement(src_.data_type(), src, from, dst, to);
    float value = LoadElement(src_.data_type(), src, from);
    if (!scales_.IsDefault()) value *= ScaleOf(index);
    if (adds_) value += sum_scale_ * LoadElement(dst_.data_type(), dst, to);
    StoreElement(dst_.data_type(), value, dst, to);
  }

  float ScaleOf(const Dims& index) const {
    int64_t at = 0;
    for (int d = 0; d < dst_.rank(); ++d) {
      if (scales_.mask >> d & 1) at = at * dst_.dim(d) + index[d];
    }
    return scales_.scales[at];
  }

  const MemoryDesc src_, dst_;
  const OutputScales scales_;
  const bool adds_;
  const float sum_scale_;
  const bool copies_;
};

}  // namespace

absl::StatusOr<ReorderDesc> ResolveReference(const ReorderDesc& desc, const Attributes& attributes,
                                             const ImplementationFacts&) {
  ABSL_RETURN_IF_ERROR(RequireBlocked(desc));
  ABSL_RETURN_IF_ERROR(RequireSumAtMost(desc, attributes));
  return desc;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const ReorderDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts) {
  return std::make_unique<Reference>(
      BasicInfo(facts, PrimitiveKind::kReorder, ArgsOf(desc.src, desc.dst), attributes), desc,
      attributes);
}

}  // namespace tilewire::reorder
