// SPDX-License-Identifier: Apache-2.0
//
// Rows along the dimension of dst whose neighbours are nearest in memory; each source has a table
// of its offsets along the row. Rows that lie densely take loops that the compiler turns into
// vectors, for the four functions that images are combined with.
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/kernels/tensor_rows.h"
#include "engine/memory/separable_offsets.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/elementwise/implementations.h"

namespace tilewire::elementwise {
namespace {

using Function = jit::Elementwise::Function;

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
class Rows final : public Primitive {
 public:
  Rows(PrimitiveInfo info, const ElementwiseDesc& desc)
      : Primitive(std::move(info)), function_(desc.function), dst_(desc.dst), rows_(desc.dst) {
    for (const MemoryDesc& src : desc.srcs) sides_.emplace_back(src, dst_.dims(), rows_.inner());
    sides_.emplace_back(dst_, dst_.dims(), rows_.inner());
    fast_ = desc.srcs.size() == 2 && sides_[0].dense() && sides_[2].dense() &&
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
    if (fast_ && FastRow(function_.function, from[0], from[1], sides_[1].constant(), dst,
                         static_cast<int64_t>(to.size()))) {
      return;
    }
    for (size_t i = 0; i < to.size(); ++i) {
      float x[3];
      for (size_t s = 0; s < count; ++s) x[s] = from[s][sides_[s].row()[i]];
      dst[to[i]] = jit::Evaluate(function_, x);
    }
  }

  const jit::Elementwise function_;
  const MemoryDesc dst_;
  const TensorRows rows_;
  std::vector<Side> sides_;  // the sources, then dst
  bool fast_ = false;
};

}  // namespace

absl::StatusOr<ElementwiseDesc> ResolveRows(const ElementwiseDesc& desc,
                                            const Attributes& attributes,
                                            const ImplementationFacts& facts) {
  ABSL_RETURN_IF_ERROR(RequireF32(desc.srcs.back()));
  ABSL_ASSIGN_OR_RETURN(ElementwiseDesc resolved, ResolveReference(desc, attributes, facts));
  ABSL_RETURN_IF_ERROR(TensorRows::RequireTables(resolved.dst));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateRows(const ElementwiseDesc& desc,
                                                      const Attributes& attributes,
                                                      const ImplementationFacts& facts) {
  PrimitiveInfo info = InfoOf(desc, attributes, facts);
  const int64_t entries =
      desc.dst.dim(NearestDimension(desc.dst)) * (static_cast<int64_t>(desc.srcs.size()) + 1);
  info.code_bytes = entries * static_cast<int64_t>(sizeof(int64_t));  // the tables
  return std::make_unique<Rows>(std::move(info), desc);
}

}  // namespace tilewire::elementwise
