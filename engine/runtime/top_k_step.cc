// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/top_k_step.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/memory/separable_offsets.h"
#include "engine/memory/zero_padding.h"
#include "engine/runtime/step_rows.h"

namespace tilewire::runtime {
namespace {

// Whether an element ranks before another: a strict order, NaN above every number.
class Ranks {
 public:
  Ranks(const graph::TopK& top, const std::vector<float>& line) : top_(top), line_(line) {}
  bool operator()(int64_t a, int64_t b) const {
    const float x = line_[a], y = line_[b];
    if (Above(x, y) || Above(y, x)) return top_.largest ? Above(x, y) : Above(y, x);
    return top_.last_of_equals ? a > b : a < b;
  }

 private:
  static bool Above(float x, float y) {
    return std::isnan(x) || std::isnan(y) ? std::isnan(x) && !std::isnan(y) : x > y;
  }
  const graph::TopK& top_;
  const std::vector<float>& line_;
};

// Immutable.
class TopKStep final : public Primitive {
 public:
  TopKStep(PrimitiveInfo info, const graph::TopK& top, const MemoryDesc& src, const MemoryDesc& dst)
      : Primitive(std::move(info)),
        top_(top),
        size_(src.dim(top.axis)),
        dst_(dst),
        from_(src),
        to_(dst),
        lines_(dst.dims()) {
    lines_[top.axis] = 1;
  }

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const float* src = args.Get<const float>(kArgSrc);
    float* dst = args.Get<float>(kArgDst);
    const int64_t lines = *tilewire::ElementCount(lines_);
    const int64_t at_once = std::max<int64_t>(1, kElementsAtOnce / size_);
    team.ParallelFor(DivUp(lines, at_once), [&](int64_t task) {
      std::vector<float> line(size_);
      std::vector<int64_t> order(size_);
      Dims index(lines_.size(), 0);
      const int64_t end = std::min(lines, (task + 1) * at_once);
      for (int64_t i = task * at_once; i < end; ++i) {
        int64_t rest = i;
        for (size_t d = lines_.size(); d-- > 0; rest /= lines_[d]) index[d] = rest % lines_[d];
        RunLine(src + from_.Offset(index), dst + to_.Offset(index), &line, &order);
      }
    });
    if (dst_.HasPadding()) ZeroPadding(dst_, dst);
  }

  void RunLine(const float* src, float* dst, std::vector<float>* line,
               std::vector<int64_t>* order) const {
    for (int64_t i = 0; i < size_; ++i) (*line)[i] = src[from_.At(top_.axis, i)];
    std::iota(order->begin(), order->end(), 0);
    const int64_t count = dst_.dim(top_.axis);
    std::partial_sort(order->begin(), order->begin() + count, order->end(), Ranks(top_, *line));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t best = (*order)[i];
      dst[to_.At(top_.axis, i)] = top_.indices ? static_cast<float>(best) : (*line)[best];
    }
  }

  static constexpr int64_t kElementsAtOnce = 16384;  // in one piece of work

  const graph::TopK top_;
  const int64_t size_;
  const MemoryDesc dst_;
  const SeparableOffsets from_, to_;
  Dims lines_;  // dst's dims, with 1 along the axis
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Primitive>> CreateTopKStep(const graph::TopK& top,
                                                                const MemoryDesc& src,
                                                                const MemoryDesc& dst) {
  ABSL_RETURN_IF_ERROR(CheckStep(src));
  ABSL_RETURN_IF_ERROR(CheckStep(dst));
  return std::make_shared<TopKStep>(StepInfo("runtime/top_k", {{kArgSrc, src}, {kArgDst, dst}}),
                                    top, src, dst);
}

}  // namespace tilewire::runtime
