// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/memory/zero_padding.h"
#include "engine/runtime/elementwise_step.h"
#include "engine/runtime/step_rows.h"

namespace tilewire::runtime {
namespace {

using Reduction = graph::Reduce::Function;

// Sums in double, so that the order of what is added hardly matters.
class Accumulator {
 public:
  explicit Accumulator(Reduction function) : function_(function) {
    if (function == Reduction::kProduct) value_ = 1;
    if (function == Reduction::kMax) value_ = -std::numeric_limits<double>::infinity();
    if (function == Reduction::kMin) value_ = std::numeric_limits<double>::infinity();
  }
  void Add(double x) {
    switch (function_) {
      case Reduction::kSum:
      case Reduction::kMean:
        value_ += x;
        return;
      case Reduction::kMax:
        value_ = std::isnan(x) || x > value_ ? x : value_;
        return;
      case Reduction::kMin:
        value_ = std::isnan(x) || x < value_ ? x : value_;
        return;
      case Reduction::kProduct:
        value_ *= x;
        return;
      case Reduction::kSumOfAbs:
        value_ += std::abs(x);
        return;
      case Reduction::kSumOfSquares:
        value_ += x * x;
        return;
    }
  }
  float Result(int64_t count) const {
    return static_cast<float>(function_ == Reduction::kMean ? value_ / static_cast<double>(count)
                                                            : value_);
  }

 private:
  const Reduction function_;
  double value_ = 0;
};

// Immutable.
class ReduceStep final : public Primitive {
 public:
  ReduceStep(PrimitiveInfo info, Reduction function, const MemoryDesc& src, const MemoryDesc& dst)
      : Primitive(std::move(info)),
        function_(function),
        dst_(dst),
        rows_(dst),
        from_(src),
        to_(dst),
        window_(src.dims()) {
    for (int d = 0; d < dst.rank(); ++d) {
      if (dst.dim(d) == src.dim(d)) window_[d] = 1;
    }
    last_ = static_cast<int>(window_.size()) - 1;
    for (int d = 0; d < src.rank(); ++d) {
      if (window_[d] > 1) last_ = d;
    }
    last_size_ = window_[last_];
    window_[last_] = 1;
  }

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const float* src = args.Get<const float>(kArgSrc);
    float* dst = args.Get<float>(kArgDst);
    rows_.ForEach(team, [&](const Dims& row) {
      Dims index = row;
      for (int64_t i = 0; i < dst_.dim(rows_.inner()); ++i) {
        index[rows_.inner()] = i;
        dst[to_.Offset(index)] = ReduceAt(src + from_.Offset(index));
      }
    });
    if (dst_.HasPadding()) ZeroPadding(dst_, dst);
  }

  // Over the window that begins there.
  float ReduceAt(const float* src) const {
    Accumulator accumulator(function_);
    int64_t count = 0;
    ForEachIndex(window_, [&](const Dims& index) {
      const float* at = src;
      for (size_t d = 0; d < index.size(); ++d) at += from_.At(static_cast<int>(d), index[d]);
      for (int64_t i = 0; i < last_size_; ++i) accumulator.Add(at[from_.At(last_, i)]);
      count += last_size_;
    });
    return accumulator.Result(count);
  }

  const Reduction function_;
  const MemoryDesc dst_;
  const StepRows rows_;
  const SeparableOffsets from_, to_;
  Dims window_;   // sizes that are reduced, 1 elsewhere and along the last of them
  int last_ = 0;  // the innermost dimension that is reduced
  int64_t last_size_ = 1;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Primitive>> CreateReduceStep(const graph::Reduce& reduce,
                                                                  const MemoryDesc& src,
                                                                  const MemoryDesc& dst) {
  ABSL_RETURN_IF_ERROR(CheckStep(src));
  ABSL_RETURN_IF_ERROR(CheckStep(dst));
  return std::make_shared<ReduceStep>(StepInfo("runtime/reduce", {{kArgSrc, src}, {kArgDst, dst}}),
                                      reduce.function, src, dst);
}

}  // namespace tilewire::runtime
