// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, every tap of one window after the other.
#include <cmath>
#include <limits>

#include "engine/base/status_macros.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/layout.h"
#include "engine/primitives/max_window/implementations.h"

namespace tilewire::max_window {
namespace {

// Immutable.
class Reference final : public Primitive {
 public:
  Reference(PrimitiveInfo info, const MaxWindowDesc& desc)
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
      Dims best;
      float maximum = -std::numeric_limits<float>::infinity();
      ForEachIndex(desc_.kernel, [&](const Dims& tap) {
        const Dims at = PlaceOfTap(index, tap);
        if (at.empty()) return;
        const float x = src[desc_.src.Offset(at)];
        if (!best.empty() && !(x > maximum) && !(std::isnan(maximum) && !std::isnan(x))) return;
        best = at;
        maximum = x;
      });
      dst[desc_.dst.Offset(index)] =
          desc_.result == MaxWindowResult::kElement ? maximum : IndexOf(best);
    });
  }

  // In src; empty where that is outside.
  Dims PlaceOfTap(const Dims& index, const Dims& tap) const {
    Dims at = index;
    for (size_t i = 0; i < tap.size(); ++i) {
      at[i + 2] = index[i + 2] * desc_.strides[i] - desc_.padding_left[i] +
                  tap[i] * (desc_.dilations[i] + 1);
      if (at[i + 2] < 0 || at[i + 2] >= desc_.src.dim(static_cast<int>(i) + 2)) return {};
    }
    return at;
  }

  float IndexOf(const Dims& at) const {
    if (at.empty()) return -1;
    const int rank = static_cast<int>(at.size());
    int64_t place = at[0] * desc_.src.dim(1) + at[1];
    for (int i = 2; i < rank; ++i) {
      const int d = desc_.result == MaxWindowResult::kColumnMajorIndex ? rank + 1 - i : i;
      place = place * desc_.src.dim(d) + at[d];
    }
    return static_cast<float>(place);
  }

  const MaxWindowDesc desc_;
};

}  // namespace

absl::StatusOr<MaxWindowDesc> ResolveReference(const MaxWindowDesc& desc,
                                               const Attributes& attributes,
                                               const ImplementationFacts&) {
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src, desc.dst));
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(attributes));
  MaxWindowDesc resolved = desc;
  ABSL_ASSIGN_OR_RETURN(resolved.dst, OrPlain(desc.dst));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const MaxWindowDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts) {
  return std::make_unique<Reference>(
      BasicInfo(facts, PrimitiveKind::kMaxWindow, ArgsOf(desc.src, desc.dst), attributes), desc);
}

}  // namespace tilewire::max_window
