// SPDX-License-Identifier: Apache-2.0
//
// Three cases: constants alone (folded); a computed tensor and a constant of one number, or of one
// per channel (a linear function, or a scale and shift that fold into the convolution before); and
// all others.
#include "engine/onnx/ops/arithmetic/element_functions.h"

#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/network/elementwise.h"
#include "engine/onnx/ops/weights.h"

namespace tilewire::reader {

using network::Convert;
namespace {

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

// In T, which is double where an operand is of f64, and float otherwise.
template <typename T>
absl::StatusOr<ConstantPtr> FoldReals(const Elementwise& function,
                                      const std::vector<ConstantPtr>& srcs, const Dims& dims,
                                      std::string name) {
  std::vector<T> result;
  for (int64_t n = 0, count = *ElementCount(dims); n < count; ++n) {
    T x[3] = {};
    for (size_t s = 0; s < srcs.size(); ++s) {
      const Constant& src = *srcs[s];
      const int64_t at = SourceOf(n, dims, src.dims);
      x[s] = src.doubles != nullptr ? static_cast<T>((*src.doubles)[at])
             : src.is_float         ? static_cast<T>(src.floats[at])
                                    : static_cast<T>(src.ints[at]);
    }
    result.push_back(Evaluate(function, x));
  }
  if (functions::IsPredicate(function.function))
    return MakeInts(std::move(name), dims, std::vector<int64_t>(result.begin(), result.end()));
  if constexpr (std::is_same_v<T, float>) {
    return MakeFloats(std::move(name), dims, std::move(result));
  } else {
    return network::MakeDoubles(std::move(name), dims, std::move(result));
  }
}

absl::StatusOr<ConstantPtr> FoldInts(const NodeContext& context, Function function,
                                     const std::vector<ConstantPtr>& srcs, const Dims& dims,
                                     std::string name) {
  std::vector<int64_t> result;
  for (int64_t n = 0, count = *ElementCount(dims); n < count; ++n) {
    int64_t x[3] = {};
    for (size_t s = 0; s < srcs.size(); ++s) x[s] = srcs[s]->ints[SourceOf(n, dims, srcs[s]->dims)];
    const std::optional<int64_t> element = network::EvaluateInts(function, x);
    if (!element) return context.node.Invalid("integer overflow or division by zero");
    result.push_back(*element);
  }
  return MakeInts(std::move(name), dims, std::move(result));
}

absl::StatusOr<Operand> FoldElementwise(const NodeContext& context, const Elementwise& function,
                                        const std::vector<Operand>& operands, const Dims& dims,
                                        std::string name) {
  if (*ElementCount(dims) > kLargestFold)
    return context.node.TooLarge("constants of more than ", kLargestFold, " elements");
  std::vector<ConstantPtr> srcs;
  bool is_float = false, is_double = false;
  // The condition of kWhere holds integers whatever the types of the others.
  const size_t first = function.function == Function::kWhere ? 1 : 0;
  for (const Operand& operand : operands) {
    ABSL_ASSIGN_OR_RETURN(ConstantPtr src, InMemory(operand.constant));
    const bool counts = srcs.size() >= first;
    if (counts && srcs.size() > first && src->is_float != is_float)
      return context.node.Invalid("inputs of different types");
    if (counts) is_float = src->is_float;
    is_double = is_double || src->doubles != nullptr;
    srcs.push_back(std::move(src));
  }
  ABSL_ASSIGN_OR_RETURN(ConstantPtr folded,
                        is_double ? FoldReals<double>(function, srcs, dims, std::move(name))
                        : is_float
                            ? FoldReals<float>(function, srcs, dims, std::move(name))
                            : FoldInts(context, function.function, srcs, dims, std::move(name)));
  return OperandOf(std::move(folded));
}

// Whether the constant has one element per channel (dimension 1) of a tensor of dims `src`.
bool IsPerChannel(const Dims& constant, const Dims& src) {
  if (constant.size() > src.size() || src.size() < 2 || src.size() > 5) return false;
  const size_t channel = 1 - (src.size() - constant.size());
  for (size_t i = 0; i < constant.size(); ++i) {
    if (constant[i] != (i == channel ? src[1] : 1)) return false;
  }
  return constant.size() + 1 >= src.size();
}

// dst = scale * src + shift
struct Linear {
  std::vector<float> scale, shift;
};

// Returns nullopt for a function that is not linear in the computed operand.
std::optional<Linear> AsLinear(Function function, bool constant_first, const Constant& constant) {
  const bool adds = function == Function::kAdd || function == Function::kSub;
  const bool multiplies =
      function == Function::kMul || (function == Function::kDiv && !constant_first);
  if (!adds && !multiplies) return std::nullopt;
  Linear linear;
  for (float c : constant.floats) {
    const bool negates = function == Function::kSub;
    linear.scale.push_back(adds                         ? (negates && constant_first ? -1 : 1)
                           : function == Function::kMul ? c
                                                        : 1 / c);
    linear.shift.push_back(!adds ? 0 : negates && !constant_first ? -c : c);
  }
  return linear;
}

// Emits a linear operation if the function of the two operands is linear.
absl::StatusOr<std::optional<Operand>> TryLinear(NodeContext& context, Function function,
                                                 const std::vector<Operand>& operands,
                                                 absl::string_view suffix) {
  if (operands.size() != 2) return std::nullopt;
  const bool constant_first = operands[0].constant != nullptr;
  const Operand& known = operands[constant_first ? 0 : 1];
  const Operand& src = operands[constant_first ? 1 : 0];
  if (known.constant == nullptr || !known.constant->is_float) return std::nullopt;
  const bool one = known.constant->count() == 1 && known.dims.size() <= src.dims.size();
  if (!one && !IsPerChannel(known.dims, src.dims)) return std::nullopt;
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr constant, InMemory(known.constant));
  std::optional<Linear> linear = AsLinear(function, constant_first, *constant);
  if (!linear) return std::nullopt;
  ABSL_ASSIGN_OR_RETURN(const ValueId numbers, context.AsValue(src));
  if (one) {
    const functions::EltwiseOp op{EltwiseAlgorithm::kLinear, linear->scale[0], linear->shift[0]};
    return context.EmitOperand(network::Activation{op}, {numbers}, src.dims, suffix);
  }
  ABSL_ASSIGN_OR_RETURN(
      const ValueId value,
      EmitScaleShift(context, numbers, std::move(linear->scale), std::move(linear->shift), suffix));
  return Operand{nullptr, value, src.dims};
}

// The type of its own that an operand has, so that the function must be computed in it; kF32 if
// there is none.
DataType OwnTypeOf(const NodeContext& context, Function function,
                   const std::vector<Operand>& operands) {
  for (size_t i = function == Function::kWhere ? 1 : 0; i < operands.size(); ++i) {
    const DataType type = context.TypeOf(operands[i]);
    if (type != DataType::kF32) return type;
  }
  return DataType::kF32;
}

// Emits a function of operands that all have the type in the model. Truth values are f32.
absl::StatusOr<Operand> EmitInType(NodeContext& context, const Elementwise& function,
                                   const std::vector<Operand>& operands, DataType type, Dims dims,
                                   absl::string_view suffix) {
  std::vector<ValueId> srcs;
  for (const Operand& operand : operands) {
    const bool is_condition = function.function == Function::kWhere && srcs.empty();
    ABSL_ASSIGN_OR_RETURN(srcs.emplace_back(),
                          is_condition ? context.Numbers(operand) : context.InType(operand, type));
  }
  const bool gives_truth = functions::IsPredicate(function.function);
  return context.EmitOperand(Elementwise(function), std::move(srcs), std::move(dims), suffix,
                             gives_truth ? DataType::kF32 : type);
}

}  // namespace

absl::StatusOr<Operand> ElementwiseOf(NodeContext& context, const Elementwise& function,
                                      const std::vector<Operand>& operands,
                                      absl::string_view suffix) {
  std::optional<Dims> dims = operands[0].dims;
  bool constant = operands[0].constant != nullptr;
  for (size_t i = 1; i < operands.size() && dims; ++i) {
    dims = network::Broadcast(*dims, operands[i].dims);
    constant = constant && operands[i].constant != nullptr;
  }
  if (!dims || !ElementCount(*dims)) {
    return context.node.Invalid(DimsToString(operands[0].dims), " and ",
                                DimsToString(operands.back().dims), " do not fit");
  }
  if (constant) {
    return FoldElementwise(context, function, operands, *dims,
                           absl::StrCat(context.output_name(), suffix));
  }
  const DataType own = OwnTypeOf(context, function.function, operands);
  if (own == DataType::kF32 && functions::IsBitwise(function.function))
    return context.node.Unimplemented("of integers that are held in f32");
  if (own != DataType::kF32)
    return EmitInType(context, function, operands, own, *std::move(dims), suffix);
  ABSL_ASSIGN_OR_RETURN(std::optional<Operand> linear,
                        TryLinear(context, function.function, operands, suffix));
  if (linear) return *std::move(linear);
  std::vector<ValueId> srcs;
  bool same = true;
  for (const Operand& operand : operands) {
    const bool is_number = operand.constant != nullptr || functions::IsPredicate(function.function);
    ABSL_ASSIGN_OR_RETURN(srcs.emplace_back(),
                          is_number ? context.Numbers(operand) : context.AsValue(operand));
    same = same && operand.dims == *dims;
  }
  network::OperationParams params = Elementwise(function);
  if (function.function == Function::kAdd && same) params = network::Sum{};
  return context.EmitOperand(std::move(params), std::move(srcs), *std::move(dims), suffix);
}

absl::Status FinishElementwise(NodeContext& context, const Elementwise& function) {
  return context.SetOutput(ElementwiseOf(context, function, {context.input(0)}));
}

absl::Status FinishThroughReals(NodeContext& context, const Elementwise& function) {
  const Operand src = context.input(0);
  if (!context.IsInteger(0)) return FinishElementwise(context, function);
  if (src.constant != nullptr) {
    ABSL_ASSIGN_OR_RETURN(const ConstantPtr known, context.Ints(0));
    std::vector<int64_t> results;
    for (const int64_t number : known->ints) {
      const auto real = static_cast<double>(number);
      results.push_back(static_cast<int64_t>(functions::Evaluate(function, &real)));
    }
    return context.SetOutput(MakeInts(context.output_name(), src.dims, std::move(results)));
  }
  const DataType held = context.TypeOf(src);
  ABSL_ASSIGN_OR_RETURN(const ValueId real,
                        context.Emit(Convert{}, {src.value}, src.dims, "/real", DataType::kF64));
  ABSL_ASSIGN_OR_RETURN(ValueId result, context.Emit(Elementwise(function), {real}, src.dims,
                                                     "/function", DataType::kF64));
  if (!IsIntegerType(held)) {  // integers that f32 holds
    ABSL_ASSIGN_OR_RETURN(result,
                          context.Emit(Convert{}, {result}, src.dims, "/whole", DataType::kS64));
  }
  return context.SetOutput(context.Emit(Convert{}, {result}, src.dims, "", held));
}

}  // namespace tilewire::reader
