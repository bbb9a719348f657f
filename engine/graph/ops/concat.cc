// SPDX-License-Identifier: Apache-2.0
#include <climits>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/ops.h"

namespace tilewire::graph {
namespace {

absl::StatusOr<Dims> ConcatDims(const NodeContext& context, int axis) {
  Dims dst = context.input(0).dims;
  for (int i = 1; i < context.input_count(); ++i) {
    const Dims& src = context.input(i).dims;
    Dims expected = src;
    if (src.size() == dst.size()) expected[axis] = dst[axis];
    if (expected != dst) {
      return context.node.Invalid(absl::StrCat("input ", i, " of dims ", DimsToString(src),
                                               " does not fit ", DimsToString(dst)));
    }
    const std::optional<int64_t> size = CheckedAdd(dst[axis], src[axis]);
    if (!size) return context.node.Invalid("the result is too large");
    dst[axis] = *size;
  }
  return dst;
}

template <typename T, typename Elements>
std::vector<T> Join(const NodeContext& context, int axis, Elements elements) {
  int64_t outer = 1;
  for (int i = 0; i < axis; ++i) outer *= context.input(0).dims[i];
  std::vector<T> joined;
  for (int64_t o = 0; o < outer; ++o) {
    for (int i = 0; i < context.input_count(); ++i) {
      const absl::Span<const T> all = elements(*context.input(i).constant);
      const absl::Span<const T> run = all.subspan(o * (all.size() / outer), all.size() / outer);
      joined.insert(joined.end(), run.begin(), run.end());
    }
  }
  return joined;
}

absl::Status FoldConcat(NodeContext& context, int axis, Dims dst) {
  const bool is_float = context.input(0).constant->is_float;
  for (int i = 1; i < context.input_count(); ++i) {
    if (context.input(i).constant->is_float != is_float)
      return context.node.Invalid("inputs of different types");
  }
  if (ElementCount(dst).value_or(0) == 0)
    return context.node.Unimplemented("constants without elements");
  if (is_float) {
    return context.SetOutput(
        MakeFloats(context.output_name(), dst,
                   Join<float>(context, axis, [](const Constant& c) { return c.floats; })));
  }
  return context.SetOutput(MakeInts(
      context.output_name(), dst,
      Join<int64_t>(context, axis, [](const Constant& c) { return absl::MakeConstSpan(c.ints); })));
}

absl::Status BuildConcat(NodeContext& context) {
  const Node& node = context.node;
  for (int i = 0; i < context.input_count(); ++i) {
    if (!context.Has(i)) return node.Invalid(absl::StrCat("input ", i, " is missing"));
  }
  if (!node.HasAttribute("axis")) return node.Invalid("attribute 'axis' is missing");
  ABSL_ASSIGN_OR_RETURN(const int64_t raw_axis, node.Int("axis", 0));
  ABSL_ASSIGN_OR_RETURN(const int axis,
                        NormalizeAxis(node, raw_axis, context.input(0).dims.size()));
  ABSL_ASSIGN_OR_RETURN(Dims dst, ConcatDims(context, axis));
  if (context.AllConstant()) return FoldConcat(context, axis, std::move(dst));
  if (context.input_count() == 1) return context.SetOutput(context.input(0));
  DataType own = DataType::kF32;  // of 16 bits or more, or f64, where a source has it
  for (int i = 0; i < context.input_count(); ++i) {
    const DataType type = context.TypeOf(context.input(i));
    if (type != DataType::kF32 && !IsByte(type)) own = type;
  }
  std::vector<ValueId> srcs;
  for (int i = 0; i < context.input_count(); ++i) {
    ABSL_ASSIGN_OR_RETURN(srcs.emplace_back(), own == DataType::kF32
                                                   ? context.RuntimeOfAnyType(i)
                                                   : context.InType(context.input(i), own));
    if (context.IsInteger(i) != context.IsInteger(0))
      return node.Invalid("inputs of different types");
    if (context.value(srcs[i]).type != context.value(srcs[0]).type)
      return node.Unimplemented("integers of 8 bits beside wider ones");
  }
  return context.Finish(Concat{axis}, std::move(srcs), std::move(dst));
}

}  // namespace

TILEWIRE_OPERATORS(Concat) = {
    {"Concat", 1, 1, INT_MAX, "axis", BuildConcat, Folds::kInMemory},
};

}  // namespace tilewire::graph
