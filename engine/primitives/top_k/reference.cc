// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: the best element that is left, as often as dst wants one.
#include <cmath>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/layout.h"
#include "engine/primitives/top_k/implementations.h"

namespace tilewire::top_k {
namespace {

// Immutable.
class Reference final : public Primitive {
 public:
  Reference(PrimitiveInfo info, const TopKDesc& desc)
      : Primitive(std::move(info)), desc_(desc), lines_(desc.dst.dims()) {
    lines_[desc.axis] = 1;
  }

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    // One piece: denormals count as zeros, as everywhere.
    team.ParallelFor(1, [&](int64_t) { RunAll(args); });
    ZeroPadding(desc_.dst, args.Find(kArgDst));
  }

  void RunAll(const ExecuteArgs& args) const {
    const float* src = args.Get<const float>(kArgSrc);
    float* dst = args.Get<float>(kArgDst);
    ForEachIndex(lines_, [&](Dims index) {
      std::vector<float> line;
      for (int64_t i = 0; i < desc_.src.dim(desc_.axis); ++i) {
        index[desc_.axis] = i;
        line.push_back(src[desc_.src.Offset(index)]);
      }
      std::vector<bool> taken(line.size(), false);
      for (int64_t i = 0; i < desc_.dst.dim(desc_.axis); ++i) {
        const size_t best = BestOf(line, taken);
        taken[best] = true;
        index[desc_.axis] = i;
        dst[desc_.dst.Offset(index)] = desc_.indices ? static_cast<float>(best) : line[best];
      }
    });
  }

  size_t BestOf(const std::vector<float>& line, const std::vector<bool>& taken) const {
    size_t best = line.size();
    for (size_t i = 0; i < line.size(); ++i) {
      if (taken[i]) continue;
      if (best == line.size() || IsBetter(line[i], line[best])) best = i;
    }
    return best;
  }

  // `later` comes after `best`.
  bool IsBetter(float later, float best) const {
    const bool above = IsAbove(later, best), below = IsAbove(best, later);
    if (!above && !below) return desc_.last_of_equals;
    return desc_.largest ? above : below;
  }

  static bool IsAbove(float x, float y) {
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && !std::isnan(y);
    return x > y;
  }

  const TopKDesc desc_;
  Dims lines_;  // dst's dims, with 1 along the axis
};

}  // namespace

absl::StatusOr<TopKDesc> ResolveReference(const TopKDesc& desc, const Attributes& attributes,
                                          const ImplementationFacts&) {
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src, desc.dst));
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(attributes));
  TopKDesc resolved = desc;
  ABSL_ASSIGN_OR_RETURN(resolved.dst, OrLayoutOf(desc.dst, desc.src));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const TopKDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts) {
  return std::make_unique<Reference>(
      BasicInfo(facts, PrimitiveKind::kTopK, ArgsOf(desc.src, desc.dst), attributes), desc);
}

}  // namespace tilewire::top_k
