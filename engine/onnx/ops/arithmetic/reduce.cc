// SPDX-License-Identifier: Apache-2.0
//
// Reductions along axes. The axes are an attribute, and from opset 18 on (ReduceSum: 13) an input.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/activations/activation_of.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/arithmetic/reduce_of.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {
namespace {

using Reduction = network::Reduce::Function;

// Refuses integers, for functions whose result is then not exact.
absl::Status CheckReal(const NodeContext& context) {
  if (!context.IsInteger(0)) return absl::OkStatus();
  return context.node.Unimplemented("of integers; supported are real numbers");
}

absl::StatusOr<std::vector<int64_t>> ReadAxes(const NodeContext& context) {
  const Node& node = context.node;
  const int64_t by_input = node.op() == "ReduceSum" ? 13 : 18;
  if (node.opset() < by_input) {
    if (context.Has(1) || node.HasAttribute("noop_with_empty_axes"))
      return node.Invalid("axes are an attribute before opset ", by_input);
    return node.Ints("axes", {});
  }
  if (node.HasAttribute("axes"))
    return node.Invalid("axes are input 1 from opset ", by_input, " on");
  if (!context.Has(1)) return std::vector<int64_t>();
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr axes, context.Ints(1));
  return axes->ints;
}

// Which dimensions are reduced; where no axis is named, all of them, or with noop_with_empty_axes
// none.
absl::StatusOr<std::vector<bool>> ReadReduced(const NodeContext& context) {
  const Node& node = context.node;
  ABSL_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, ReadAxes(context));
  ABSL_ASSIGN_OR_RETURN(const int64_t noop, node.Int("noop_with_empty_axes", 0));
  const size_t rank = context.input(0).dims.size();
  std::vector<bool> reduced(rank, axes.empty() && noop == 0);
  for (int64_t raw_axis : axes) {
    ABSL_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(node, raw_axis, rank));
    reduced[axis] = true;
  }
  return reduced;
}

// Refuses to reduce nothing, where it is not settled whether the function still applies to each
// element.
absl::Status CheckReduces(const NodeContext& context, const std::vector<bool>& reduced) {
  if (reduced.empty() || std::find(reduced.begin(), reduced.end(), true) != reduced.end())
    return absl::OkStatus();
  return context.node.Unimplemented("noop_with_empty_axes without axes");
}

// Drops the reduced dimensions unless keepdims says otherwise, and names output 0.
absl::Status FinishReduce(NodeContext& context, Operand kept, const std::vector<bool>& reduced) {
  ABSL_ASSIGN_OR_RETURN(const int64_t keep_dims, context.node.Int("keepdims", 1));
  Dims dims;
  for (size_t d = 0; d < reduced.size(); ++d) {
    if (keep_dims != 0 || !reduced[d]) dims.push_back(kept.dims[d]);
  }
  return context.SetOutput(ReshapeOf(context, kept, std::move(dims), "/squeezed"));
}

// For integers; returns nullopt on an overflow or a result that is not an integer.
std::optional<int64_t> Accumulated(Reduction function, std::optional<int64_t> so_far, int64_t x) {
  std::optional<int64_t> term = x;
  if (function == Reduction::kSumOfSquares) term = CheckedMul(x, x);
  if (function == Reduction::kSumOfAbs && x < 0) term = CheckedMul(x, -1);
  if (!so_far || !term) return term;
  switch (function) {
    case Reduction::kProduct:
      return CheckedMul(*so_far, x);
    case Reduction::kMax:
      return std::max(*so_far, x);
    case Reduction::kMin:
      return std::min(*so_far, x);
    case Reduction::kMean:
      return std::nullopt;
    default:
      return CheckedAdd(*so_far, *term);
  }
}

// The result for no integers; nullopt for a limit of the type, and for a mean.
std::optional<int64_t> OfNothing(Reduction function) {
  if (function == Reduction::kProduct) return 1;
  const bool is_limit = function == Reduction::kMax || function == Reduction::kMin;
  if (is_limit || function == Reduction::kMean) return std::nullopt;
  return 0;
}

// Folds constant integers, for shape arithmetic.
absl::StatusOr<Operand> FoldReduce(const NodeContext& context, Reduction function,
                                   const std::vector<bool>& reduced) {
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr src, context.Ints(0));
  Dims dims = ReducedDims(src->dims, reduced);
  std::vector<std::optional<int64_t>> results(*ElementCount(dims));
  if (src->ints.empty()) absl::c_fill(results, OfNothing(function));
  for (size_t n = 0; n < src->ints.size(); ++n) {
    int64_t rest = static_cast<int64_t>(n), to = 0, stride = 1;
    for (size_t d = dims.size(); d-- > 0; rest /= src->dims[d]) {
      if (!reduced[d]) to += rest % src->dims[d] * stride;
      stride *= dims[d];
    }
    results[to] = Accumulated(function, results[to], src->ints[n]);
    if (!results[to]) return context.node.Invalid("integer overflow");
  }
  std::vector<int64_t> ints;
  for (const std::optional<int64_t>& result : results) {
    if (!result) return context.node.Unimplemented("a limit of no elements");
    ints.push_back(*result);
  }
  return OperandOf(MakeInts(context.output_name(), dims, std::move(ints)));
}

template <Reduction kFunction>
absl::Status BuildReduce(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const std::vector<bool> reduced, ReadReduced(context));
  if (kFunction == Reduction::kSumOfAbs || kFunction == Reduction::kSumOfSquares)
    ABSL_RETURN_IF_ERROR(CheckReduces(context, reduced));
  if (context.input(0).constant != nullptr && !context.input(0).constant->is_float) {
    ABSL_ASSIGN_OR_RETURN(const Operand folded, FoldReduce(context, kFunction, reduced));
    return FinishReduce(context, folded, reduced);
  }
  ABSL_ASSIGN_OR_RETURN(const Operand kept,
                        ReduceOf(context, kFunction, context.input(0), reduced, "/kept"));
  return FinishReduce(context, kept, reduced);
}

absl::StatusOr<Operand> LogOf(NodeContext& context, const Operand& src, absl::string_view suffix) {
  return ElementwiseOf(context, {Function::kLog}, {src}, suffix);
}

// A mean over all spatial dimensions is a pooling, which keeps its source's layout.
bool IsGlobalPooling(const std::vector<bool>& reduced) {
  if (reduced.size() < 3 || reduced.size() > 5) return false;
  for (size_t d = 0; d < reduced.size(); ++d) {
    if (reduced[d] != (d >= 2)) return false;
  }
  return true;
}

absl::Status BuildReduceMean(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const std::vector<bool> reduced, ReadReduced(context));
  ABSL_RETURN_IF_ERROR(CheckReal(context));
  if (!IsGlobalPooling(reduced)) return BuildReduce<Reduction::kMean>(context);
  ABSL_ASSIGN_OR_RETURN(
      const ValueId mean,
      EmitGlobalPooling(context, network::Pooling::Algorithm::kAvgExcludePadding, "/kept"));
  return FinishReduce(context, {nullptr, mean, context.value(mean).dims}, reduced);
}

absl::Status BuildReduceL2(NodeContext& context) {
  ABSL_RETURN_IF_ERROR(CheckReal(context));
  ABSL_ASSIGN_OR_RETURN(const std::vector<bool> reduced, ReadReduced(context));
  ABSL_RETURN_IF_ERROR(CheckReduces(context, reduced));
  ABSL_ASSIGN_OR_RETURN(const Operand squares, ReduceOf(context, Reduction::kSumOfSquares,
                                                        context.input(0), reduced, "/squares"));
  ABSL_ASSIGN_OR_RETURN(const Operand kept,
                        ActivationOf(context, {EltwiseAlgorithm::kSqrt}, squares, "/kept"));
  return FinishReduce(context, kept, reduced);
}

absl::Status BuildReduceLogSum(NodeContext& context) {
  ABSL_RETURN_IF_ERROR(CheckReal(context));
  ABSL_ASSIGN_OR_RETURN(const std::vector<bool> reduced, ReadReduced(context));
  ABSL_RETURN_IF_ERROR(CheckReduces(context, reduced));
  ABSL_ASSIGN_OR_RETURN(const Operand sum,
                        ReduceOf(context, Reduction::kSum, context.input(0), reduced, "/sum"));
  ABSL_ASSIGN_OR_RETURN(const Operand kept, LogOf(context, sum, "/kept"));
  return FinishReduce(context, kept, reduced);
}

absl::StatusOr<Operand> FiniteOf(NodeContext& context, const Operand& src) {
  if (context.TypeOf(src) != DataType::kF32) return src;
  constexpr float kMost = std::numeric_limits<float>::max();
  const auto number = [&](const char* name, float value) {
    return context.KnownFloat(name, value);
  };
  ABSL_ASSIGN_OR_RETURN(const Operand low, ElementwiseOf(context, {Function::kMax},
                                                         {src, number("/lowest", -kMost)}, "/low"));
  return ElementwiseOf(context, {Function::kMin}, {low, number("/most", kMost)}, "/max");
}

// max + log(sum(e^(x - max))): e^x alone would overflow. An infinite maximum is taken for the
// nearest finite number, as it less itself is NaN.
absl::Status BuildReduceLogSumExp(NodeContext& context) {
  ABSL_RETURN_IF_ERROR(CheckReal(context));
  const Operand src = context.input(0);
  ABSL_ASSIGN_OR_RETURN(const std::vector<bool> reduced, ReadReduced(context));
  ABSL_RETURN_IF_ERROR(CheckReduces(context, reduced));
  ABSL_ASSIGN_OR_RETURN(const Operand largest,
                        ReduceOf(context, Reduction::kMax, src, reduced, "/largest"));
  ABSL_ASSIGN_OR_RETURN(const Operand max, FiniteOf(context, largest));
  ABSL_ASSIGN_OR_RETURN(const Operand shifted,
                        ElementwiseOf(context, {Function::kSub}, {src, max}, "/shifted"));
  ABSL_ASSIGN_OR_RETURN(const Operand exp,
                        ActivationOf(context, {EltwiseAlgorithm::kExp}, shifted, "/exp"));
  ABSL_ASSIGN_OR_RETURN(const Operand sum,
                        ReduceOf(context, Reduction::kSum, exp, reduced, "/sum"));
  ABSL_ASSIGN_OR_RETURN(const Operand log, LogOf(context, sum, "/log"));
  ABSL_ASSIGN_OR_RETURN(const Operand kept,
                        ElementwiseOf(context, {Function::kAdd}, {log, max}, "/kept"));
  return FinishReduce(context, kept, reduced);
}

// (sum |x|^p)^(1/p) over all dimensions after the channels.
absl::Status BuildGlobalLpPool(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const int64_t p, ReadPower(context.node));
  if (p < 1) return context.node.Invalid("p ", p);
  Operand src = context.input(0);
  std::vector<bool> reduced(src.dims.size(), true);
  if (reduced.size() < 3) return context.node.Invalid("the input has no spatial dimensions");
  reduced[0] = reduced[1] = false;
  Reduction function = p == 1 ? Reduction::kSumOfAbs : Reduction::kSumOfSquares;
  const float power = static_cast<float>(p);
  if (p > 2) {
    function = Reduction::kSum;
    ABSL_ASSIGN_OR_RETURN(src, ActivationOf(context, {EltwiseAlgorithm::kAbs}, src, "/sizes"));
    ABSL_ASSIGN_OR_RETURN(
        src, ActivationOf(context, {EltwiseAlgorithm::kPow, 1, power}, src, "/powers"));
  }
  ABSL_ASSIGN_OR_RETURN(Operand norm, ReduceOf(context, function, src, reduced, "/sum"));
  if (p == 2) {
    ABSL_ASSIGN_OR_RETURN(norm, ActivationOf(context, {EltwiseAlgorithm::kSqrt}, norm));
  } else if (p > 2) {
    ABSL_ASSIGN_OR_RETURN(norm,
                          ActivationOf(context, {EltwiseAlgorithm::kPow, 1, 1 / power}, norm));
  }
  return context.SetOutput(norm);
}

// Along axes, which are an attribute or input 1.
constexpr OpRow Along(OpRow row, Folds folds = Folds::kInMemory) {
  row.attributes = "axes keepdims noop_with_empty_axes";
  row.folds = folds;
  row.deciding = Inputs({1});
  return row;
}

}  // namespace

TILEWIRE_OPERATORS(Reduce) = {
    OfReals({"GlobalLpPool", 1, 1, 1, "p", BuildGlobalLpPool}),
    Along({"ReduceL1", 1, 1, 2, "", BuildReduce<Reduction::kSumOfAbs>}),
    Along({"ReduceL2", 1, 1, 2, "", BuildReduceL2}),
    Along({"ReduceLogSum", 1, 1, 2, "", BuildReduceLogSum}),
    Along({"ReduceLogSumExp", 1, 1, 2, "", BuildReduceLogSumExp}),
    Along({"ReduceMax", 1, 1, 2, "", BuildReduce<Reduction::kMax>}),
    Along({"ReduceMean", 1, 1, 2, "", BuildReduceMean}, Folds::kNever),
    Along({"ReduceMin", 1, 1, 2, "", BuildReduce<Reduction::kMin>}),
    Along({"ReduceProd", 1, 1, 2, "", BuildReduce<Reduction::kProduct>}),
    Along({"ReduceSum", 1, 1, 2, "", BuildReduce<Reduction::kSum>}),
    Along({"ReduceSumSquare", 1, 1, 2, "", BuildReduce<Reduction::kSumOfSquares>}),
};

}  // namespace tilewire::reader
