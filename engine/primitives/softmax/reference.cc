// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one row of the axis after the other.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/base/status_macros.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/separable_offsets.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/layout.h"
#include "engine/primitives/softmax/implementations.h"

namespace tilewire::softmax {
namespace {

// Immutable.
class Reference final : public Primitive {
 public:
  Reference(PrimitiveInfo info, const SoftmaxDesc& desc)
      : Primitive(std::move(info)),
        axis_(desc.axis),
        outer_(desc.dst.dims()),
        size_(desc.dst.dim(desc.axis)),
        src_(desc.src),
        dst_(desc.dst),
        dst_desc_(desc.dst) {
    outer_[axis_] = size_ == 0 ? 0 : 1;
  }

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team&) const override {
    const float* src = args.Get<const float>(kArgSrc);
    float* dst = args.Get<float>(kArgDst);
    ForEachIndex(outer_,
                 [&](const Dims& row) { RunRow(src + src_.Offset(row), dst + dst_.Offset(row)); });
    ZeroPadding(dst_desc_, dst);
  }

  void RunRow(const float* src, float* dst) const {
    float highest = -std::numeric_limits<float>::infinity();
    for (int64_t i = 0; i < size_; ++i) highest = std::max(highest, src[src_.At(axis_, i)]);
    float total = 0;
    for (int64_t i = 0; i < size_; ++i) {
      const float power = std::exp(src[src_.At(axis_, i)] - highest);
      dst[dst_.At(axis_, i)] = power;
      total += power;
    }
    for (int64_t i = 0; i < size_; ++i) dst[dst_.At(axis_, i)] /= total;
  }

  const int axis_;
  Dims outer_;  // one index per row: the axis has size 1
  const int64_t size_;
  const SeparableOffsets src_, dst_;
  const MemoryDesc dst_desc_;
};

}  // namespace

absl::StatusOr<SoftmaxDesc> ResolveReference(const SoftmaxDesc& desc, const Attributes& attributes,
                                             const ImplementationFacts&) {
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src));
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(attributes));
  ABSL_RETURN_IF_ERROR(RequireForward(desc.prop_kind));
  SoftmaxDesc resolved = desc;
  ABSL_ASSIGN_OR_RETURN(resolved.dst, OrLayoutOf(desc.dst, desc.src));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const SoftmaxDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts) {
  return std::make_unique<Reference>(
      BasicInfo(facts, PrimitiveKind::kSoftmax, ArgsOf(desc.src, desc.dst), attributes), desc);
}

}  // namespace tilewire::softmax
