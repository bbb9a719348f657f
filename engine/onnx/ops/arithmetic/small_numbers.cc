// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/ops/arithmetic/small_numbers.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"

namespace tilewire::reader {
namespace {

absl::StatusOr<Operand> Clipped(NodeContext& context, const Operand& src, float least,
                                float largest, absl::string_view suffix) {
  return ElementwiseOf(context, {Function::kClip, least, largest}, {src},
                       absl::StrCat(suffix, "/clipped"));
}

// Instead of NaN the number.
absl::StatusOr<Operand> WithoutNan(NodeContext& context, const Operand& src, float number,
                                   absl::string_view suffix) {
  ABSL_ASSIGN_OR_RETURN(const Operand is_nan, ElementwiseOf(context, {Function::kIsNan}, {src},
                                                            absl::StrCat(suffix, "/is_nan")));
  return ElementwiseOf(context, {Function::kWhere},
                       {is_nan, context.KnownFloat(absl::StrCat(suffix, "/of_nan"), number), src},
                       absl::StrCat(suffix, "/number"));
}

// Rounded numbers that are larger than the largest become `beyond`, with their sign.
absl::StatusOr<Operand> WithBeyond(NodeContext& context, const Operand& rounded,
                                   const SmallFloat& to, absl::string_view suffix) {
  const auto name = [suffix](absl::string_view part) { return absl::StrCat(suffix, part); };
  ABSL_ASSIGN_OR_RETURN(const Operand size,
                        ElementwiseOf(context, {Function::kAbs}, {rounded}, name("/size")));
  ABSL_ASSIGN_OR_RETURN(
      const Operand is_beyond,
      ElementwiseOf(context, {Function::kLess},
                    {context.KnownFloat(name("/largest"), to.largest), size}, name("/is_beyond")));
  ABSL_ASSIGN_OR_RETURN(
      const Operand beyond,
      ElementwiseOf(context, {Function::kMul},
                    {rounded, context.KnownFloat(name("/factor"), to.beyond)}, name("/beyond")));
  return ElementwiseOf(context, {Function::kWhere}, {is_beyond, beyond, rounded}, name("/all"));
}

Operand NearestOf(const NodeContext& context, const Constant& reals, SmallType type, bool saturates,
                  absl::string_view suffix) {
  std::vector<float> nearest(reals.floats.begin(), reals.floats.end());
  for (float& number : nearest) number = NearestSmall(type, number, saturates);
  return context.KnownFloats(suffix, reals.dims, std::move(nearest));
}

}  // namespace

absl::StatusOr<Operand> NearestSmallOf(NodeContext& context, const Operand& reals, SmallType type,
                                       bool saturates, absl::string_view suffix) {
  if (!IsSmallFloat(type)) return context.node.Unimplemented("to ", SmallTypeName(type));
  if (reals.constant != nullptr)
    return NearestOf(context, *reals.constant, type, saturates, suffix);
  const SmallFloat to = SmallFloatOf(type);
  saturates = saturates || type == SmallType::kF4E2M1;
  Operand result = reals;
  if (type == SmallType::kF4E2M1) {
    ABSL_ASSIGN_OR_RETURN(result, WithoutNan(context, result, to.largest, suffix));
  }
  const float most = saturates ? to.largest : 2 * to.largest;
  ABSL_ASSIGN_OR_RETURN(result, Clipped(context, result, -most, most, suffix));
  const bool is_last = saturates && to.has_minus_zero;
  ABSL_ASSIGN_OR_RETURN(
      result, ElementwiseOf(context, functions::RoundToBits(to.significant_bits, to.least_normal),
                            {result}, absl::StrCat(suffix, is_last ? "" : "/rounded")));
  if (!saturates) {
    ABSL_ASSIGN_OR_RETURN(result, WithBeyond(context, result, to, suffix));
  }
  if (is_last) return result;
  return ElementwiseOf(context, {Function::kAdd},  // -0 becomes 0
                       {result, context.KnownFloat(absl::StrCat(suffix, "/zero"), 0)}, suffix);
}

absl::StatusOr<Operand> SmallIntegersOf(NodeContext& context, const Operand& whole, SmallType type,
                                        absl::string_view suffix) {
  const float least = LeastOf(type), largest = LargestOf(type);
  if (whole.constant != nullptr) {
    std::vector<int64_t> integers;
    for (const float number : whole.constant->floats)
      integers.push_back(static_cast<int64_t>(number > least ? std::min(number, largest) : least));
    auto constant = std::make_shared<Constant>(
        *MakeInts(absl::StrCat(context.output_name(), suffix), whole.dims, std::move(integers)));
    constant->integers = HolderOf(type);
    return OperandOf(std::move(constant));
  }
  ABSL_ASSIGN_OR_RETURN(const Operand clipped, Clipped(context, whole, least, largest, suffix));
  return context.EmitOperand(network::Quantize{}, {clipped.value}, whole.dims, suffix,
                             HolderOf(type));
}

absl::StatusOr<Operand> LowestBitsOf(NodeContext& context, const Operand& whole, SmallType type) {
  const auto known = [&](absl::string_view suffix, int64_t number) {
    auto constant = std::make_shared<Constant>(
        *MakeInts(absl::StrCat(context.output_name(), suffix), {}, {number}));
    constant->integers = DataType::kU8;
    return OperandOf(std::move(constant));
  };
  ABSL_ASSIGN_OR_RETURN(const ValueId wide, context.Emit(network::Convert{}, {whole.value},
                                                         whole.dims, "/wide", DataType::kS64));
  ABSL_ASSIGN_OR_RETURN(
      const Operand bytes,
      context.EmitOperand(network::Convert{}, {wide}, whole.dims, "/byte", DataType::kU8));
  // The highest bit of the type counts as negative: adding it and taking it away spreads it.
  const auto range = static_cast<int64_t>(LargestOf(type) - LeastOf(type)) + 1;
  const bool is_signed = HolderOf(type) == DataType::kS8;
  ABSL_ASSIGN_OR_RETURN(
      Operand bits, ElementwiseOf(context, {Function::kBitAnd}, {bytes, known("/mask", range - 1)},
                                  is_signed ? "/bits" : ""));
  if (!is_signed) return bits;
  ABSL_ASSIGN_OR_RETURN(bits, ElementwiseOf(context, {Function::kBitXor},
                                            {bits, known("/sign", range / 2)}, "/turned"));
  ABSL_ASSIGN_OR_RETURN(
      bits, ElementwiseOf(context, {Function::kSub}, {bits, known("/sign", range / 2)}, "/spread"));
  return context.EmitOperand(network::Convert{}, {bits.value}, whole.dims, "", DataType::kS8);
}

}  // namespace tilewire::reader
