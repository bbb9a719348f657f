// SPDX-License-Identifier: Apache-2.0
//
// What the quantised operators share: grids from scales and zero points, constants on both sides of
// them, and the two conversions of a computed tensor.
#ifndef ENGINE_GRAPH_OPS_QUANTIZATION_PARAMS_H_
#define ENGINE_GRAPH_OPS_QUANTIZATION_PARAMS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/graph/specialization.h"

namespace tilewire::graph {

// The grids of a tensor; its axis matters where there is more than one.
struct AxisQuantization {
  int axis = 0;
  std::vector<QuantizationParams> params = {QuantizationParams()};
};

// Which inputs of a node hold them; -1, or one that is left out: 1 and 0.
struct QuantizationInputs {
  int scale = -1, zero_point = -1;
};

// For a tensor of dims `dims`, along `axis` where there are as many grids as it has indices.
// nullopt: they are computed.
//   kInvalidArgument  counts that do not fit, scales that are not positive, zero points out of
//   range
absl::StatusOr<std::optional<AxisQuantization>> ReadQuantization(const NodeContext& context,
                                                                 QuantizationInputs inputs,
                                                                 const Dims& dims, int64_t axis);
// The same where they must be known. kUnimplemented: they are computed.
absl::StatusOr<AxisQuantization> ReadKnownQuantization(const NodeContext& context,
                                                       QuantizationInputs inputs, const Dims& dims,
                                                       int64_t axis);

// The type that a zero point gives to what it belongs to; kU8 where it is left out.
// kUnimplemented: it is not u8 or s8.
absl::StatusOr<DataType> TypeOfZeroPoint(const NodeContext& context, int input);

// Elements are computed when they are wanted where there are many.
absl::StatusOr<ConstantPtr> DequantizeConstant(const ConstantPtr& integers,
                                               const AxisQuantization& quantization,
                                               std::string name);
absl::StatusOr<ConstantPtr> QuantizeConstant(const ConstantPtr& floats,
                                             const AxisQuantization& quantization, DataType type,
                                             std::string name);

// Real numbers of an operand of integers, known or computed, on grids that are known (`grids`) or
// computed (`inputs`).
absl::StatusOr<Operand> DequantizeOf(NodeContext& context, const Operand& src,
                                     const std::optional<AxisQuantization>& quantization,
                                     QuantizationInputs inputs, int64_t axis,
                                     absl::string_view suffix = "");
// The other way.
absl::StatusOr<Operand> QuantizeOf(NodeContext& context, const Operand& src,
                                   const std::optional<AxisQuantization>& quantization,
                                   QuantizationInputs inputs, int64_t axis, DataType type,
                                   absl::string_view suffix = "");
// With a scale and a zero point that are computed.
absl::StatusOr<Operand> QuantizeBy(NodeContext& context, const Operand& src, const Operand& scale,
                                   const Operand& zero_point, DataType type,
                                   absl::string_view suffix = "");

}  // namespace tilewire::graph

#endif  // ENGINE_GRAPH_OPS_QUANTIZATION_PARAMS_H_
