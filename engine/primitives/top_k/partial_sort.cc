// SPDX-License-Identifier: Apache-2.0
//
// Any layout, some lines along the axis per piece of work: a line is copied, and its indices are
// sorted as far as dst wants them.
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/memory/separable_offsets.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/top_k/implementations.h"
#include "engine/primitives/top_k/ranks.h"

namespace tilewire::top_k {
namespace {

// Whether an element ranks before another: a strict order, NaN above every number.
template <typename T>
class Ranks {
 public:
  Ranks(const TopKDesc& top, const std::vector<T>& line) : top_(top), line_(line) {}
  bool operator()(int64_t a, int64_t b) const {
    const T x = line_[a], y = line_[b];
    if (IsAbove(x, y) || IsAbove(y, x)) return top_.largest ? IsAbove(x, y) : IsAbove(y, x);
    return top_.last_of_equals ? a > b : a < b;
  }

 private:
  const TopKDesc& top_;
  const std::vector<T>& line_;
};

// Of elements that T holds. Immutable.
template <typename T>
class PartialSort final : public Primitive {
 public:
  PartialSort(PrimitiveInfo info, const TopKDesc& top)
      : Primitive(std::move(info)),
        top_(top),
        size_(top.src.dim(top.axis)),
        from_(top.src),
        to_(top.dst),
        lines_(top.dst.dims()) {
    lines_[top.axis] = 1;
  }

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const T* src = args.Get<const T>(kArgSrc);
    void* dst = args.Find(kArgDst);
    const int64_t lines = *tilewire::ElementCount(lines_);
    const int64_t at_once = std::max<int64_t>(1, kElementsAtOnce / std::max<int64_t>(1, size_));
    team.ParallelFor(DivUp(lines, at_once), [&](int64_t task) {
      std::vector<T> line(size_);
      std::vector<int64_t> order(size_);
      Dims index(lines_.size(), 0);
      const int64_t end = std::min(lines, (task + 1) * at_once);
      for (int64_t i = task * at_once; i < end; ++i) {
        int64_t rest = i;
        for (size_t d = lines_.size(); d-- > 0; rest /= lines_[d]) index[d] = rest % lines_[d];
        RunLine(src + from_.Offset(index), dst, to_.Offset(index), &line, &order);
      }
    });
    if (top_.dst.HasPadding()) ZeroPadding(top_.dst, dst);
  }

  void RunLine(const T* src, void* dst, int64_t offset, std::vector<T>* line,
               std::vector<int64_t>* order) const {
    for (int64_t i = 0; i < size_; ++i) (*line)[i] = src[from_.At(top_.axis, i)];
    std::iota(order->begin(), order->end(), 0);
    const int64_t count = top_.dst.dim(top_.axis);
    std::partial_sort(order->begin(), order->begin() + count, order->end(), Ranks<T>(top_, *line));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t best = (*order)[i];
      StoreBest(top_, (*line)[best], best, dst, offset + to_.At(top_.axis, i));
    }
  }

  static constexpr int64_t kElementsAtOnce = 16384;  // in one piece of work

  const TopKDesc top_;
  const int64_t size_;
  const SeparableOffsets from_, to_;
  Dims lines_;  // dst's dims, with 1 along the axis
};

}  // namespace

absl::StatusOr<TopKDesc> ResolvePartialSort(const TopKDesc& desc, const Attributes& attributes,
                                            const ImplementationFacts& facts) {
  return ResolveReference(desc, attributes, facts);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreatePartialSort(const TopKDesc& desc,
                                                             const Attributes& attributes,
                                                             const ImplementationFacts& facts) {
  return VisitElementType(desc, [&](auto element) -> std::unique_ptr<Primitive> {
    return std::make_unique<PartialSort<decltype(element)>>(InfoOf(desc, attributes, facts), desc);
  });
}

}  // namespace tilewire::top_k
