// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <climits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/empty_tensors.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {
namespace {

absl::StatusOr<Dims> ConcatDims(const Node& node, const std::vector<Operand>& srcs, int axis) {
  Dims dst = srcs[0].dims;
  for (size_t i = 1; i < srcs.size(); ++i) {
    const Dims& src = srcs[i].dims;
    Dims expected = src;
    if (src.size() == dst.size()) expected[axis] = dst[axis];
    if (expected != dst) {
      return node.Invalid("input ", i, " of dims ", DimsToString(src), " does not fit ",
                          DimsToString(dst));
    }
    const std::optional<int64_t> size = CheckedAdd(dst[axis], src[axis]);
    if (!size) return node.Invalid("the result is too large");
    dst[axis] = *size;
  }
  return dst;
}

template <typename T, typename Elements>
std::vector<T> Join(const std::vector<Operand>& srcs, int axis, Elements elements) {
  int64_t outer = 1;
  for (int i = 0; i < axis; ++i) outer *= srcs[0].dims[i];
  std::vector<T> joined;
  for (int64_t o = 0; o < outer; ++o) {
    for (const Operand& src : srcs) {
      const absl::Span<const T> all = elements(*src.constant);
      const absl::Span<const T> run = all.subspan(o * (all.size() / outer), all.size() / outer);
      joined.insert(joined.end(), run.begin(), run.end());
    }
  }
  return joined;
}

absl::StatusOr<Operand> FoldConcat(const Node& node, const std::vector<Operand>& srcs, int axis,
                                   Dims dst, std::string name) {
  const bool is_float = srcs[0].constant->is_float;
  for (const Operand& src : srcs) {
    if (src.constant->is_float != is_float) return node.Invalid("inputs of different types");
  }
  if (IsEmpty(dst)) {
    return OperandOf(is_float ? MakeFloats(std::move(name), dst, {})
                              : MakeInts(std::move(name), dst, {}));
  }
  if (absl::c_all_of(srcs, [](const Operand& src) { return src.constant->doubles != nullptr; })) {
    return OperandOf(
        network::MakeDoubles(std::move(name), dst, Join<double>(srcs, axis, [](const Constant& c) {
                               return absl::MakeConstSpan(*c.doubles);
                             })));
  }
  if (is_float) {
    return OperandOf(MakeFloats(
        std::move(name), dst, Join<float>(srcs, axis, [](const Constant& c) { return c.floats; })));
  }
  return OperandOf(MakeInts(std::move(name), dst, Join<int64_t>(srcs, axis, [](const Constant& c) {
                              return absl::MakeConstSpan(c.ints);
                            })));
}

// The type of its own that a source has, of 16 bits or more, or f64, if there are such; else kF32.
DataType OwnType(const NodeContext& context, const std::vector<Operand>& srcs) {
  DataType own = DataType::kF32;
  for (const Operand& src : srcs) {
    const DataType type = context.TypeOf(src);
    if (type != DataType::kF32 && (!IsByte(type) || own == DataType::kF32)) own = type;
  }
  return own;
}

absl::Status BuildConcat(NodeContext& context) {
  const Node& node = context.node;
  std::vector<Operand> srcs;
  for (int i = 0; i < context.input_count(); ++i) srcs.push_back(context.input(i));
  if (!node.HasAttribute("axis") && node.opset() >= 4)
    return node.Invalid("attribute 'axis' is missing");
  ABSL_ASSIGN_OR_RETURN(const int axis, ReadAxis(node, 1, srcs[0].dims.size()));
  return context.SetOutput(ConcatOf(context, srcs, axis));
}

}  // namespace

absl::StatusOr<Operand> ConcatOf(NodeContext& context, const std::vector<Operand>& srcs, int axis,
                                 absl::string_view suffix) {
  const Node& node = context.node;
  ABSL_ASSIGN_OR_RETURN(Dims dst, ConcatDims(node, srcs, axis));
  const bool all_known = std::all_of(srcs.begin(), srcs.end(),
                                     [](const Operand& src) { return src.constant != nullptr; });
  if (all_known)
    return FoldConcat(node, srcs, axis, std::move(dst),
                      absl::StrCat(context.output_name(), suffix));
  if (srcs.size() == 1) return srcs[0];
  const DataType own = OwnType(context, srcs);
  std::vector<ValueId> values;
  for (const Operand& src : srcs) {
    ABSL_ASSIGN_OR_RETURN(values.emplace_back(), own == DataType::kF32 ? context.OfAnyType(src)
                                                                       : context.InType(src, own));
    if (IsInteger(src) != IsInteger(srcs[0])) return node.Invalid("inputs of different types");
    if (context.value(values.back()).type != context.value(values[0]).type)
      return node.Unimplemented("integers of 8 bits beside wider ones");
  }
  ABSL_ASSIGN_OR_RETURN(const ValueId joined,
                        context.Emit(network::Concat{axis}, std::move(values), dst, suffix));
  return Operand{nullptr, joined, std::move(dst), IsInteger(srcs[0])};
}

TILEWIRE_OPERATORS(Concat) = {
    TakesSmall(TrainsEvery({"Concat", 1, 1, INT_MAX, "axis", BuildConcat, Folds::kInMemory})),
};

}  // namespace tilewire::reader
