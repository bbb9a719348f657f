// SPDX-License-Identifier: Apache-2.0
//
// Any layout, some lines along the axis per piece of work: a line is copied, unless its elements
// follow each other, and as many are put in order as dst wants.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "engine/memory/separable_offsets.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/top_k/implementations.h"
#include "engine/primitives/top_k/ranks.h"
#include "engine/threading/ranges.h"

namespace tilewire::top_k {
namespace {

template <typename T>
struct Candidate {
  T element;
  int64_t index;
};

// The best elements of a line. A line is read in groups, most of which have no element that ranks
// before the last of those that are held.
template <typename T>
class BestElements {
 public:
  BestElements(const TopKDesc& top, int64_t count)
      : top_(top), count_(count), capacity_(std::max<int64_t>(2 * count, kFewestHeld)) {
    held_.reserve(capacity_);
  }

  // The best of `line`, in order.
  const std::vector<Candidate<T>>& Of(const T* line, int64_t size) {
    held_.clear();
    is_bounded_ = false;
    if (count_ == 0) return held_;
    for (int64_t first = 0; first < size; first += kGroup) {
      const int64_t end = std::min(size, first + kGroup);
      if (is_bounded_ && end - first == kGroup && !MayEnter(line + first)) continue;
      for (int64_t i = first; i < end; ++i) Offer({line[i], i});
    }
    KeepBest();
    std::sort(held_.begin(), held_.end(), Order());
    return held_;
  }

 private:
  static constexpr int64_t kFewestHeld = 256;
  static constexpr int64_t kVectorBytes = 16, kLanes = kVectorBytes / sizeof(T);
  static constexpr int64_t kGroup = 4 * kLanes;
  typedef T Vector __attribute__((vector_size(kVectorBytes)));

  // Whether a candidate ranks before another: a strict order.
  bool IsBefore(const Candidate<T>& a, const Candidate<T>& b) const {
    if (IsAbove(a.element, b.element)) return top_.largest;
    if (IsAbove(b.element, a.element)) return !top_.largest;
    return top_.last_of_equals ? a.index > b.index : a.index < b.index;
  }
  auto Order() const {
    return [this](const Candidate<T>& a, const Candidate<T>& b) { return IsBefore(a, b); };
  }

  // False only if no element of the group ranks before the bound; NaN may.
  bool MayEnter(const T* group) const {
    auto stays_out = Vector{} == Vector{};
    for (int64_t i = 0; i < kGroup; i += kLanes) {
      Vector some;
      std::memcpy(&some, group + i, kVectorBytes);
      stays_out &= top_.largest
                       ? (top_.last_of_equals ? some < bound_.element : some <= bound_.element)
                       : (top_.last_of_equals ? some > bound_.element : some >= bound_.element);
    }
    uint64_t halves[2];
    std::memcpy(halves, &stays_out, kVectorBytes);
    return (halves[0] & halves[1]) != ~uint64_t{0};
  }

  void Offer(const Candidate<T>& candidate) {
    if (is_bounded_ && !IsBefore(candidate, bound_)) return;
    held_.push_back(candidate);
    if (static_cast<int64_t>(held_.size()) == capacity_) KeepBest();
  }

  void KeepBest() {
    if (static_cast<int64_t>(held_.size()) <= count_) return;
    const auto last = held_.begin() + count_ - 1;
    std::nth_element(held_.begin(), last, held_.end(), Order());
    held_.resize(count_);
    bound_ = held_.back();
    is_bounded_ = true;
  }

  const TopKDesc& top_;
  const int64_t count_, capacity_;
  std::vector<Candidate<T>> held_;
  Candidate<T> bound_ = {};  // the last of the best so far
  bool is_bounded_ = false;
};

// A partial sort of elements that T holds. Immutable.
template <typename T>
class PartialSort final : public Primitive {
 public:
  PartialSort(PrimitiveInfo info, const TopKDesc& top)
      : Primitive(std::move(info)),
        top_(top),
        size_(top.src.dim(top.axis)),
        from_(top.src),
        to_(top.dst),
        lines_(top.dst.dims()),
        is_dense_(top.src.IsPlain() && top.src.stride(top.axis) == 1) {
    lines_[top.axis] = 1;
  }

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const T* src = args.Get<const T>(kArgSrc);
    void* dst = args.Find(kArgDst);
    const int64_t lines = *tilewire::ElementCount(lines_);
    const int64_t at_once = threading::ItemsAtOnce(kElementsAtOnce, size_);
    threading::ParallelForRanges(team, lines, at_once, [&](int64_t first, int64_t end) {
      std::vector<T> line(is_dense_ ? 0 : size_);
      BestElements<T> best(top_, top_.dst.dim(top_.axis));
      Dims index(lines_.size(), 0);
      for (int64_t i = first; i < end; ++i) {
        int64_t rest = i;
        for (size_t d = lines_.size(); d-- > 0; rest /= lines_[d]) index[d] = rest % lines_[d];
        RunLine(src + from_.Offset(index), dst, to_.Offset(index), &line, &best);
      }
    });
    if (top_.dst.HasPadding()) ZeroPadding(top_.dst, dst);
  }

  void RunLine(const T* src, void* dst, int64_t offset, std::vector<T>* line,
               BestElements<T>* best) const {
    for (size_t i = 0; i < line->size(); ++i) (*line)[i] = src[from_.At(top_.axis, i)];
    int64_t rank = 0;
    for (const Candidate<T>& one : best->Of(is_dense_ ? src : line->data(), size_))
      StoreBest(top_, one.element, one.index, dst, offset + to_.At(top_.axis, rank++));
  }

  static constexpr int64_t kElementsAtOnce = 16384;  // in one piece of work

  const TopKDesc top_;
  const int64_t size_;
  const SeparableOffsets from_, to_;
  Dims lines_;           // dst's dims, with 1 along the axis
  const bool is_dense_;  // the elements of a line of src follow each other
};

}  // namespace

absl::StatusOr<TopKDesc> ResolvePartialSort(const Request<TopKDesc>& request) {
  return ResolveReference(request);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreatePartialSort(const Request<TopKDesc>& request) {
  return VisitElementType(request.desc, [&](auto element) -> std::unique_ptr<Primitive> {
    return std::make_unique<PartialSort<decltype(element)>>(InfoOf(request), request.desc);
  });
}

}  // namespace tilewire::top_k
