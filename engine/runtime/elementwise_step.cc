// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/elementwise_step.h"

#include <cmath>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/graph/elementwise.h"
#include "engine/memory/zero_padding.h"
#include "engine/runtime/step_rows.h"

namespace tilewire::runtime {
namespace {

using Function = graph::Elementwise::Function;

// Offsets of one side by index of dst; broadcast dimensions stand still.
class Side {
 public:
  Side(const MemoryDesc& desc, const Dims& dst, int inner)
      : offsets_(desc), broadcast_(dst.size(), false) {
    for (size_t d = 0; d < dst.size(); ++d) broadcast_[d] = desc.dim(d) == 1 && dst[d] != 1;
    for (int64_t i = 0; i < dst[inner]; ++i)
      row_.push_back(broadcast_[inner] ? 0 : offsets_.At(inner, i));
    for (size_t i = 0; i < row_.size(); ++i) {
      dense_ = dense_ && row_[i] == static_cast<int64_t>(i);
      constant_ = constant_ && row_[i] == 0;
    }
  }

  int64_t RowAt(const Dims& index) const {
    int64_t offset = offsets_.base();
    for (size_t d = 0; d < index.size(); ++d)
      if (!broadcast_[d]) offset += offsets_.At(static_cast<int>(d), index[d]);
    return offset;
  }
  const std::vector<int64_t>& row() const { return row_; }
  bool dense() const { return dense_; }
  bool constant() const { return constant_; }

 private:
  SeparableOffsets offsets_;
  std::vector<bool> broadcast_;
  std::vector<int64_t> row_;  // offsets along the row
  bool dense_ = true, constant_ = true;
};

template <typename Op>
void DenseRow(const float* a, const float* b, bool b_constant, float* dst, int64_t count, Op op) {
  if (b_constant) {
    const float y = *b;
    for (int64_t i = 0; i < count; ++i) dst[i] = op(a[i], y);
  } else {
    for (int64_t i = 0; i < count; ++i) dst[i] = op(a[i], b[i]);
  }
}

// The four functions that images are combined with, where rows are dense; false for others.
bool FastRow(Function function, const float* a, const float* b, bool b_constant, float* dst,
             int64_t count) {
  switch (function) {
    case Function::kAdd:
      DenseRow(a, b, b_constant, dst, count, [](float x, float y) { return x + y; });
      return true;
    case Function::kSub:
      DenseRow(a, b, b_constant, dst, count, [](float x, float y) { return x - y; });
      return true;
    case Function::kMul:
      DenseRow(a, b, b_constant, dst, count, [](float x, float y) { return x * y; });
      return true;
    case Function::kDiv:
      DenseRow(a, b, b_constant, dst, count, [](float x, float y) { return x / y; });
      return true;
    default:
      return false;
  }
}

// Immutable.
class ElementwiseStep final : public Primitive {
 public:
  ElementwiseStep(PrimitiveInfo info, const graph::Elementwise& elementwise,
                  const std::vector<MemoryDesc>& srcs, const MemoryDesc& dst)
      : Primitive(std::move(info)), elementwise_(elementwise), dst_(dst), rows_(dst) {
    for (const MemoryDesc& src : srcs) sides_.emplace_back(src, dst.dims(), rows_.inner());
    sides_.emplace_back(dst, dst.dims(), rows_.inner());
    fast_ = srcs.size() == 2 && sides_[0].dense() && sides_[2].dense() &&
            (sides_[1].dense() || sides_[1].constant());
  }

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const size_t count = sides_.size() - 1;
    const float* srcs[3] = {};
    for (size_t s = 0; s < count; ++s)
      srcs[s] = args.Get<const float>(kArgMultipleSrc + static_cast<int>(s));
    float* const dst = args.Get<float>(kArgDst);
    rows_.ForEach(team, [&](const Dims& index) {
      const float* from[3] = {};
      for (size_t s = 0; s < count; ++s) from[s] = srcs[s] + sides_[s].RowAt(index);
      RunRow(from, count, dst + sides_[count].RowAt(index));
    });
    if (dst_.HasPadding()) ZeroPadding(dst_, dst);
  }

  void RunRow(const float* const from[3], size_t count, float* dst) const {
    const std::vector<int64_t>& to = sides_[count].row();
    if (fast_ && FastRow(elementwise_.function, from[0], from[1], sides_[1].constant(), dst,
                         static_cast<int64_t>(to.size()))) {
      return;
    }
    for (size_t i = 0; i < to.size(); ++i) {
      float x[3];
      for (size_t s = 0; s < count; ++s) x[s] = from[s][sides_[s].row()[i]];
      dst[to[i]] = graph::Evaluate(elementwise_, x);
    }
  }

  const graph::Elementwise elementwise_;
  const MemoryDesc dst_;
  const StepRows rows_;
  std::vector<Side> sides_;  // the sources, then dst
  bool fast_ = false;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Primitive>> CreateElementwiseStep(
    const graph::Elementwise& elementwise, const std::vector<MemoryDesc>& srcs,
    const MemoryDesc& dst) {
  ABSL_RETURN_IF_ERROR(CheckStep(dst));
  std::vector<ArgDesc> args;
  for (const MemoryDesc& src : srcs) {
    ABSL_RETURN_IF_ERROR(CheckStep(src));
    args.push_back({kArgMultipleSrc + static_cast<int>(args.size()), src});
  }
  args.push_back({kArgDst, dst});
  return std::make_shared<ElementwiseStep>(StepInfo("runtime/elementwise", std::move(args)),
                                           elementwise, srcs, dst);
}

}  // namespace tilewire::runtime
