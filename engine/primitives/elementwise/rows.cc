// SPDX-License-Identifier: Apache-2.0
//
// Rows along the dimension of dst whose neighbours are nearest in memory; each source has a table
// of its offsets along the row. Rows that lie densely have a loop for each of the functions that
// tensors are usually combined with.
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/kernels/moves/tensor_rows.h"
#include "engine/memory/element_types.h"
#include "engine/memory/separable_offsets.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/elementwise/implementations.h"
#include "engine/primitives/elementwise/number_functions.h"

namespace tilewire::elementwise {
namespace {

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

// Bytes of `desc`'s elements from the start of its buffer.
int64_t BytesOf(const MemoryDesc& desc, int64_t elements) {
  return elements * SizeOf(desc.data_type());
}

// Calls loop(f) and returns true if `function` is one of kFunctions, whose f is compiled into it.
template <typename T, Function... kFunctions, typename Loop>
bool RunOneOf(Function function, Loop loop) {
  const auto run = [&]<Function kFunction>() {
    if (function != kFunction) return false;
    loop([](T x, T y) { return FunctionOfTwo<kFunction>(x, y); });
    return true;
  };
  return (run.template operator()<kFunctions>() || ...);
}

// Functions of two numbers that a loop of their own computes; for all others the loop asks for the
// function at each element.
template <typename T, typename Loop>
bool RunInlined(Function function, Loop loop) {
  return RunOneOf<T, Function::kAdd, Function::kSub, Function::kMul, Function::kDiv, Function::kMod,
                  Function::kFloorMod>(function, loop);
}

// Immutable.
class Rows final : public Primitive {
 public:
  Rows(PrimitiveInfo info, const ElementwiseDesc& desc)
      : Primitive(std::move(info)),
        desc_(desc),
        rows_(desc.dst),
        has_condition_(desc.function.function == Function::kWhere),
        gives_truth_(functions::IsPredicate(desc.function.function)),
        truth_type_(TruthTypeOf(desc)) {
    for (const MemoryDesc& src : desc.srcs)
      sides_.emplace_back(src, desc.dst.dims(), rows_.inner());
    sides_.emplace_back(desc.dst, desc.dst.dims(), rows_.inner());
    is_dense_ = desc.srcs.size() == 2 && sides_[0].dense() && sides_[2].dense() &&
                (sides_[1].dense() || sides_[1].constant());
  }

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const DataType type = NumberTypeOf(desc_);
    if (type == DataType::kF32) return RunAs<float>(args, team);
    VisitIntegerOrDouble(type, [&](auto number) { RunAs<decltype(number)>(args, team); });
  }

  template <typename T>
  void RunAs(const ExecuteArgs& args, const threading::Team& team) const {
    const size_t count = desc_.srcs.size();
    const std::byte* srcs[3] = {};
    for (size_t s = 0; s < count; ++s)
      srcs[s] = args.Get<const std::byte>(kArgMultipleSrc + static_cast<int>(s));
    auto* const dst = args.Get<std::byte>(kArgDst);
    rows_.ForEach(team, [&](const Dims& index) {
      const void* from[3] = {};
      for (size_t s = 0; s < count; ++s)
        from[s] = srcs[s] + BytesOf(desc_.srcs[s], sides_[s].RowAt(index));
      RunRow<T>(from, dst + BytesOf(desc_.dst, sides_[count].RowAt(index)));
    });
    if (desc_.dst.HasPadding()) ZeroPadding(desc_.dst, dst);
  }

  template <typename T>
  void RunRow(const void* const from[3], void* dst) const {
    if (is_dense_ && !gives_truth_ && RunDenseRow<T>(from, static_cast<T*>(dst))) return;
    const size_t count = desc_.srcs.size();
    const std::vector<int64_t>& to = sides_[count].row();
    for (size_t i = 0; i < to.size(); ++i) {
      T x[3] = {};
      for (size_t s = 0; s < count; ++s) {
        const int64_t at = sides_[s].row()[i];
        const bool is_condition = has_condition_ && s == 0;
        x[s] = is_condition ? static_cast<T>(TruthAt(truth_type_, from[s], at))
                            : static_cast<const T*>(from[s])[at];
      }
      const T result = EvaluateNumbers(desc_.function, x);
      if (gives_truth_) {
        SetTruthAt(truth_type_, dst, to[i], result != 0);
      } else {
        static_cast<T*>(dst)[to[i]] = result;
      }
    }
  }

  template <typename T>
  bool RunDenseRow(const void* const from[3], T* dst) const {
    const auto *a = static_cast<const T*>(from[0]), *b = static_cast<const T*>(from[1]);
    const auto count = static_cast<int64_t>(sides_[0].row().size());
    return RunInlined<T>(desc_.function.function, [&](auto op) {
      if (sides_[1].dense()) {
        for (int64_t i = 0; i < count; ++i) dst[i] = op(a[i], b[i]);
      } else if (count > 0) {
        const T y = *b;
        for (int64_t i = 0; i < count; ++i) dst[i] = op(a[i], y);
      }
    });
  }

  const ElementwiseDesc desc_;
  const TensorRows rows_;
  const bool has_condition_, gives_truth_;
  const DataType truth_type_;
  std::vector<Side> sides_;  // the sources, then dst
  bool is_dense_ = false;    // two sources, whose elements follow each other as dst's do
};

}  // namespace

absl::StatusOr<ElementwiseDesc> ResolveRows(const Request<ElementwiseDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(ElementwiseDesc resolved, ResolveReference(request));
  ABSL_RETURN_IF_ERROR(TensorRows::RequireTables(resolved.dst));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateRows(const Request<ElementwiseDesc>& request) {
  const ElementwiseDesc& desc = request.desc;
  PrimitiveInfo info = InfoOf(request);
  const int64_t entries =
      desc.dst.dim(NearestDimension(desc.dst)) * (static_cast<int64_t>(desc.srcs.size()) + 1);
  info.code_bytes = entries * static_cast<int64_t>(sizeof(int64_t));  // the tables
  return std::make_unique<Rows>(std::move(info), desc);
}

}  // namespace tilewire::elementwise
