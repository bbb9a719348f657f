// SPDX-License-Identifier: Apache-2.0
//
// Sums and products of two tensors. Three cases: of two constants (folded, with broadcasting), of a
// computed tensor and a constant (one number for all, or one a channel), and the sum of computed
// tensors of one shape.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/ops.h"
#include "engine/graph/ops/weights.h"

namespace tilewire::graph {
namespace {

enum class Arithmetic { kAdd, kSub, kMul, kDiv };

// Folding is for shapes and the like; a larger product of constants is a sign of a file that asks
// for too much.
constexpr int64_t kLargestFold = int64_t{1} << 24;

std::optional<int64_t> Apply(Arithmetic op, int64_t a, int64_t b) {
  int64_t result;
  switch (op) {
    case Arithmetic::kAdd:
      return CheckedAdd(a, b);
    case Arithmetic::kSub:
      if (__builtin_sub_overflow(a, b, &result)) return std::nullopt;
      return result;
    case Arithmetic::kMul:
      return CheckedMul(a, b);
    case Arithmetic::kDiv:
      if (b == 0 || (a == INT64_MIN && b == -1)) return std::nullopt;
      return a / b;
  }
  return std::nullopt;
}

std::optional<float> Apply(Arithmetic op, float a, float b) {
  switch (op) {
    case Arithmetic::kAdd:
      return a + b;
    case Arithmetic::kSub:
      return a - b;
    case Arithmetic::kMul:
      return a * b;
    case Arithmetic::kDiv:
      return a / b;
  }
  return std::nullopt;
}

// Numpy's rule; nullopt where the dims do not fit.
std::optional<Dims> Broadcast(const Dims& a, const Dims& b) {
  const size_t rank = std::max(a.size(), b.size());
  Dims dst(rank, 1);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t from_a = i + a.size() >= rank ? a[i + a.size() - rank] : 1;
    const int64_t from_b = i + b.size() >= rank ? b[i + b.size() - rank] : 1;
    if (from_a != from_b && from_a != 1 && from_b != 1) return std::nullopt;
    dst[i] = from_a == 1 ? from_b : from_a;
  }
  return dst;
}

// Where element `n` of `dst` comes from in a tensor of dims `src` that is broadcast to it.
int64_t SourceOf(int64_t n, const Dims& dst, const Dims& src) {
  int64_t offset = 0, stride = 1;
  for (size_t i = 1; i <= src.size(); ++i) {
    const int64_t index = n % dst[dst.size() - i];
    n /= dst[dst.size() - i];
    if (src[src.size() - i] != 1) offset += index * stride;
    stride *= src[src.size() - i];
  }
  return offset;
}

template <typename T>
absl::StatusOr<std::vector<T>> FoldElements(const Node& node, Arithmetic op, absl::Span<const T> a,
                                            const Dims& a_dims, absl::Span<const T> b,
                                            const Dims& b_dims, const Dims& dst) {
  std::vector<T> result;
  for (int64_t n = 0, count = *ElementCount(dst); n < count; ++n) {
    const std::optional<T> element =
        Apply(op, a[SourceOf(n, dst, a_dims)], b[SourceOf(n, dst, b_dims)]);
    if (!element) return node.Invalid("integer overflow or division by zero");
    result.push_back(*element);
  }
  return result;
}

absl::Status Fold(NodeContext& context, Arithmetic op) {
  const Node& node = context.node;
  const Constant& a = *context.input(0).constant;
  const Constant& b = *context.input(1).constant;
  if (a.is_float != b.is_float) return node.Invalid("inputs of different types");
  const std::optional<Dims> dst = Broadcast(a.dims, b.dims);
  if (!dst || !ElementCount(*dst)) {
    return node.Invalid(
        absl::StrCat(DimsToString(a.dims), " and ", DimsToString(b.dims), " do not fit"));
  }
  if (*ElementCount(*dst) > kLargestFold) return node.Unimplemented("constants of this size");
  if (a.is_float) {
    ABSL_ASSIGN_OR_RETURN(std::vector<float> floats,
                          FoldElements<float>(node, op, a.floats, a.dims, b.floats, b.dims, *dst));
    return context.SetOutput(MakeFloats(context.output_name(), *dst, std::move(floats)));
  }
  ABSL_ASSIGN_OR_RETURN(std::vector<int64_t> ints,
                        FoldElements<int64_t>(node, op, a.ints, a.dims, b.ints, b.dims, *dst));
  return context.SetOutput(MakeInts(context.output_name(), *dst, std::move(ints)));
}

// The constant has one element, or one a channel (dimension 1) of a tensor of dims `src` after
// broadcasting.
bool IsPerChannel(const Dims& constant, const Dims& src) {
  if (constant.size() > src.size() || src.size() < 2) return false;
  const size_t channel =
      constant.size() + 1 - src.size();  // may wrap around: then there is no channel dimension
  for (size_t i = 0; i < constant.size(); ++i) {
    if (constant[i] != (i == channel ? src[1] : 1)) return false;
  }
  return constant.size() + 1 >= src.size();
}

// dst = scale * src + shift with one pair of numbers a constant element; `constant_first`: constant
// op src.
absl::Status WithConstant(NodeContext& context, Arithmetic op, int runtime,
                          const Constant& constant) {
  const Node& node = context.node;
  const bool constant_first = runtime == 1;
  if (op == Arithmetic::kDiv && constant_first)
    return node.Unimplemented("a constant divided by a computed tensor");
  std::vector<float> scale, shift;
  for (float c : constant.floats) {
    const bool linear = op == Arithmetic::kAdd || op == Arithmetic::kSub;
    scale.push_back(linear                   ? (op == Arithmetic::kSub && constant_first ? -1 : 1)
                    : op == Arithmetic::kMul ? c
                                             : 1 / c);
    shift.push_back(!linear ? 0 : op == Arithmetic::kSub && !constant_first ? -c : c);
  }
  ABSL_ASSIGN_OR_RETURN(const ValueId src, context.Runtime(runtime));
  const Dims dims = context.input(runtime).dims;
  if (constant.count() == 1 && constant.dims.size() <= dims.size()) {
    const jit::EltwiseOp linear{jit::EltwiseAlgorithm::kLinear, scale[0], shift[0]};
    return context.Finish(Eltwise{linear}, {src}, dims);
  }
  if (!IsPerChannel(constant.dims, dims)) {
    return node.Unimplemented(absl::StrCat("a constant of dims ", DimsToString(constant.dims),
                                           " with a tensor of ", DimsToString(dims)));
  }
  return FinishScaleShift(context, src, std::move(scale), std::move(shift));
}

absl::Status LowerArithmetic(NodeContext& context, Arithmetic op) {
  const Node& node = context.node;
  if (node.opset() < 7 && node.HasAttribute("broadcast"))
    return node.Unimplemented("broadcast of opset 6");
  if (context.AllConstant()) return Fold(context, op);
  for (int i = 0; i < 2; ++i) {
    if (context.input(i).constant == nullptr) continue;
    ABSL_ASSIGN_OR_RETURN(const ConstantPtr constant, context.Floats(i));
    return WithConstant(context, op, 1 - i, *constant);
  }
  if (op != Arithmetic::kAdd) return node.Unimplemented("of two computed tensors");
  return LowerSum(context);
}

}  // namespace

absl::Status LowerAdd(NodeContext& context) { return LowerArithmetic(context, Arithmetic::kAdd); }
absl::Status LowerSub(NodeContext& context) { return LowerArithmetic(context, Arithmetic::kSub); }
absl::Status LowerMul(NodeContext& context) { return LowerArithmetic(context, Arithmetic::kMul); }
absl::Status LowerDiv(NodeContext& context) { return LowerArithmetic(context, Arithmetic::kDiv); }

absl::Status LowerSum(NodeContext& context) {
  const Dims dims = context.input(0).dims;
  std::vector<ValueId> srcs;
  for (int i = 0; i < context.input_count(); ++i) {
    if (!context.Has(i)) return context.node.Invalid(absl::StrCat("input ", i, " is missing"));
    ABSL_ASSIGN_OR_RETURN(const ValueId src, context.Runtime(i));
    if (context.input(i).dims != dims) {
      const absl::Status status =
          Broadcast(dims, context.input(i).dims)
              ? context.node.Unimplemented("broadcasting of computed tensors")
              : context.node.Invalid("shapes that do not fit");
      return absl::Status(status.code(),
                          absl::StrCat(status.message(), ": ", DimsToString(dims), " and ",
                                       DimsToString(context.input(i).dims)));
    }
    srcs.push_back(src);
  }
  if (srcs.size() == 1) return context.SetOutput(context.input(0));
  return context.Finish(Sum{}, std::move(srcs), dims);
}

}  // namespace tilewire::graph
