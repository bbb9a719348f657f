// SPDX-License-Identifier: Apache-2.0
//
// Cast and CastLike. Numbers stay where they are held exactly: integers that are cut from f32 stay
// f32, those of a type of their own get the other type.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/memory/element_types.h"
#include "engine/memory/narrow_floats.h"
#include "engine/onnx/file/onnx_types.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/arithmetic/small_numbers.h"
#include "engine/onnx/ops/ops.h"

namespace tilewire::reader {

using network::Convert;
using network::Reshaped;
namespace {

// 1 for what is not 0.
absl::Status FinishTruth(NodeContext& context, const Operand& numbers) {
  return context.SetOutput(ElementwiseOf(context, {Function::kAnd}, {numbers, numbers}));
}

// From a type of its own.
absl::Status CastTyped(NodeContext& context, DataType to) {
  const Operand src = context.input(0);
  if (to == DataType::kBool) return FinishTruth(context, src);
  const DataType rounded = to == DataType::kF16 || to == DataType::kBf16 ? DataType::kF32 : to;
  if (rounded == to)
    return context.SetOutput(context.Emit(Convert{}, {src.value}, src.dims, "", to));
  ABSL_ASSIGN_OR_RETURN(const ValueId narrow,
                        context.Emit(Convert{}, {src.value}, src.dims, "/narrow", to));
  return context.SetOutput(context.Emit(Convert{}, {narrow}, src.dims));
}

// Integers that f32 holds wrap around in fewer bits, or where they have no sign.
absl::Status WrapFloats(NodeContext& context, DataType to) {
  const Operand src = context.input(0);
  ABSL_ASSIGN_OR_RETURN(const ValueId whole,
                        context.Emit(Convert{}, {src.value}, src.dims, "/whole", DataType::kS64));
  return context.SetOutput(context.Emit(Convert{}, {whole}, src.dims, "", to));
}

// Whether f32 holds results of this type: integers that count something.
bool IsHeldInF32(DataType type) { return type == DataType::kS32 || type == DataType::kS64; }

// From f32, or from 8 bits to real numbers. Towards zero to integers; s32 and s64 are held in f32,
// and so are f64 and the narrow floating-point types, rounded.
absl::Status CastFloats(NodeContext& context, DataType to) {
  ABSL_ASSIGN_OR_RETURN(const ValueId src, context.Numbers(context.input(0)));
  const Operand numbers = {nullptr, src, context.input(0).dims};
  if (to == DataType::kF32 || to == DataType::kF64) return context.SetOutput(numbers);
  if (to == DataType::kBool) return FinishTruth(context, numbers);
  if (!IsIntegerType(to)) {
    ABSL_ASSIGN_OR_RETURN(const ValueId narrow,
                          context.Emit(Convert{}, {src}, numbers.dims, "/narrow", to));
    return context.SetOutput(context.Emit(Convert{}, {narrow}, numbers.dims));
  }
  if (context.IsInteger(0) && !IsHeldInF32(to)) return WrapFloats(context, to);
  if (!IsHeldInF32(to)) return CastTyped(context, to);
  if (IsIntegerOrBool(context.ElementType(0))) return context.SetOutput(numbers);
  return context.SetOutput(ElementwiseOf(context, {Function::kTruncate}, {numbers}));
}

int64_t CutTo(DataType type, int64_t value) {
  if (type == DataType::kBool) return value != 0;
  return VisitIntegerOrDouble(type, [value]<typename T>(T) -> int64_t {
    if constexpr (std::is_integral_v<T>) return static_cast<int64_t>(static_cast<T>(value));
    return value;
  });
}

// The nearest number that the type has, towards zero; 0 of NaN. Constants of u64 have 63 bits.
int64_t NearestIn(DataType type, double value) {
  if (type == DataType::kBool) return value != 0;
  if (std::isnan(value)) return 0;
  return VisitIntegerOrDouble(type, [value]<typename T>(T) -> int64_t {
    using Limits = std::numeric_limits<std::conditional_t<std::is_integral_v<T>, T, int64_t>>;
    constexpr int64_t kMost = std::min<uint64_t>(Limits::max(), INT64_MAX);
    if (value >= static_cast<double>(kMost)) return kMost;
    return value <= static_cast<double>(Limits::min()) ? static_cast<int64_t>(Limits::min())
                                                       : static_cast<int64_t>(value);
  });
}

ConstantPtr AsDoubles(const Constant& src, const std::string& name) {
  if (src.doubles != nullptr) return Reshaped(src, name, src.dims);
  std::vector<double> doubles(src.ints.begin(), src.ints.end());
  doubles.insert(doubles.end(), src.floats.begin(), src.floats.end());
  return network::MakeDoubles(name, src.dims, std::move(doubles));
}

absl::Status FoldInSmall(NodeContext& context, const Constant& src, SmallType to, bool saturates) {
  if (!IsSmallInteger(to)) {
    std::vector<float> floats(src.ints.begin(), src.ints.end());
    floats.insert(floats.end(), src.floats.begin(), src.floats.end());
    return context.SetOutput(NearestSmallOf(
        context, context.KnownFloats("/reals", src.dims, std::move(floats)), to, saturates));
  }
  std::vector<int64_t> ints;
  for (int64_t value : src.ints) ints.push_back(LowestBits(to, value));
  for (float value : src.floats)
    ints.push_back(LowestBits(to, NearestIn(DataType::kS64, std::nearbyint(value))));
  auto cast = std::make_shared<Constant>(*MakeInts(context.output_name(), src.dims, ints));
  cast->integers = HolderOf(to);
  return context.SetOutput(std::move(cast));
}

// Real numbers are rounded to the nearest; of integers the lowest bits stay.
absl::Status CastToSmall(NodeContext& context, SmallType to, bool saturates) {
  const Operand src = context.input(0);
  if (src.constant != nullptr) return FoldInSmall(context, *src.constant, to, saturates);
  if (!IsSmallInteger(to)) {
    ABSL_ASSIGN_OR_RETURN(const ValueId reals, context.InType(src, DataType::kF32));
    return context.SetOutput(NearestSmallOf(context, {nullptr, reals, src.dims}, to, saturates));
  }
  if (context.IsInteger(0)) return context.SetOutput(LowestBitsOf(context, src, to));
  ABSL_ASSIGN_OR_RETURN(const ValueId reals, context.Numbers(src));
  ABSL_ASSIGN_OR_RETURN(const Operand whole, ElementwiseOf(context, {Function::kRound},
                                                           {{nullptr, reals, src.dims}}, "/whole"));
  return context.SetOutput(LowestBitsOf(context, whole, to));
}

absl::Status FoldCast(NodeContext& context, const Constant& src, DataType to) {
  const std::string& name = context.output_name();
  if (!IsIntegerOrBool(to)) {
    if (to == DataType::kF64) return context.SetOutput(AsDoubles(src, name));
    if (to == DataType::kF32 && src.is_float && src.doubles == nullptr)
      return context.SetOutput(Reshaped(src, name, src.dims));
    std::vector<float> floats(src.ints.begin(), src.ints.end());
    floats.insert(floats.end(), src.floats.begin(), src.floats.end());
    for (float& value : floats) value = RoundTo(to, value);
    return context.SetOutput(MakeFloats(name, src.dims, std::move(floats)));
  }
  if (!src.is_float && IsByte(to) && src.integers == to)
    return context.SetOutput(Reshaped(src, name, src.dims));
  std::vector<int64_t> ints;
  for (int64_t value : src.ints) ints.push_back(CutTo(to, value));
  if (src.doubles != nullptr) {
    for (double value : *src.doubles) ints.push_back(NearestIn(to, value));
  } else {
    for (float value : src.floats) ints.push_back(NearestIn(to, value));
  }
  auto cast = std::make_shared<Constant>(*MakeInts(name, src.dims, std::move(ints)));
  cast->integers = IsByte(to) ? to : DataType::kS32;
  return context.SetOutput(std::move(cast));
}

absl::Status CastTo(NodeContext& context, ElementType to) {
  const Operand src = context.input(0);
  ABSL_ASSIGN_OR_RETURN(const bool saturates, ReadSaturate(context.node));
  // It means something for FLOAT8E8M0 alone, which is refused.
  ABSL_RETURN_IF_ERROR(context.node.OneOf("round_mode", "up", {"up", "down", "nearest"}).status());
  if (to.is_small() && to.Is(context.ElementType(0))) return context.SetOutput(src);
  if (to.is_small()) return CastToSmall(context, to.small(), saturates);
  if (src.constant != nullptr) return FoldCast(context, *src.constant, to);
  const DataType held = context.TypeOf(src);
  if (held == to && held != DataType::kF32) return context.SetOutput(src);
  const bool as_floats = held == DataType::kF32 || (IsByte(held) && !IsIntegerOrBool(to));
  return as_floats ? CastFloats(context, to) : CastTyped(context, to);
}

// The number of the type; before opset 6 its name.
absl::StatusOr<int64_t> TargetOf(const Node& node) {
  if (node.opset() >= 6) return node.Int("to", 0);
  ABSL_ASSIGN_OR_RETURN(const std::string name, node.String("to", ""));
  onnx::TensorProto::DataType type = onnx::TensorProto::UNDEFINED;
  if (onnx::TensorProto::DataType_Parse(name, &type)) return type;
  return node.Invalid("to '", name.substr(0, 200), "', which is not a type");
}

absl::Status BuildCast(NodeContext& context) {
  const Node& node = context.node;
  ABSL_ASSIGN_OR_RETURN(const int64_t number, TargetOf(node));
  const std::optional<ElementType> to = ElementTypeOf(number);
  if (!to)
    return node.Unimplemented("to ONNX element type ", ElementTypeText(number),
                              "; supported are numbers and BOOL");
  return CastTo(context, *to);
}

absl::Status BuildCastLike(NodeContext& context) { return CastTo(context, context.ElementType(1)); }

ElementType TargetType(const TypedNode& node, int) {
  return ElementTypeOf(TargetOf(node.node).value_or(0)).value_or(ElementType());
}

}  // namespace

TILEWIRE_OPERATORS(Cast) = {
    TakesSmall({"Cast", 1, 1, 1, "round_mode saturate to", BuildCast, Folds::kInMemory,
                TargetType}),
    TakesSmall({"CastLike", 15, 2, 2, "round_mode saturate", BuildCastLike, Folds::kInMemory,
                LikeSecondInput}),
};

}  // namespace tilewire::reader
