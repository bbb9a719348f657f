// SPDX-License-Identifier: Apache-2.0
//
// Shared by the quantised operators: params from scales and zero points, the two conversions of
// constants, and the two conversions of computed tensors.
#ifndef ENGINE_GRAPH_OPS_QUANTIZATION_PARAMS_H_
#define ENGINE_GRAPH_OPS_QUANTIZATION_PARAMS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/graph/specialization.h"

namespace tilewire::graph {

// The quantization params of a tensor; `axis` matters only if there are several.
struct AxisQuantization {
  int axis = 0;
  std::vector<QuantizationParams> params = {QuantizationParams()};
};

// The inputs of a node that hold scale and zero point; without them (-1 or left out), 1 and 0.
struct QuantizationInputs {
  int scale = -1, zero_point = -1;
};

// Reads the params of a tensor of dims `dims`: one for all, or one per index of `axis`. Returns
// nullopt if they are computed at run time.
//   kInvalidArgument  counts that do not fit, scales that are not positive, zero points out of
//                     range
absl::StatusOr<std::optional<AxisQuantization>> ReadQuantization(const NodeContext& context,
                                                                 QuantizationInputs inputs,
                                                                 const Dims& dims, int64_t axis);
// The same for params that must be constants. kUnimplemented: they are computed at run time.
absl::StatusOr<AxisQuantization> ReadKnownQuantization(const NodeContext& context,
                                                       QuantizationInputs inputs, const Dims& dims,
                                                       int64_t axis);

// The type of a zero point, which is that of its tensor; kU8 if it is left out. kUnimplemented:
// it is not u8 or s8.
absl::StatusOr<DataType> TypeOfZeroPoint(const NodeContext& context, int input);

// Large constants are converted on demand.
absl::StatusOr<ConstantPtr> DequantizeConstant(const ConstantPtr& integers,
                                               const AxisQuantization& quantization,
                                               std::string name);
absl::StatusOr<ConstantPtr> QuantizeConstant(const ConstantPtr& floats,
                                             const AxisQuantization& quantization, DataType type,
                                             std::string name);

// Dequantizes a constant or computed operand, with params that are constants (`quantization`) or
// computed (`inputs`).
absl::StatusOr<Operand> DequantizeOf(NodeContext& context, const Operand& src,
                                     const std::optional<AxisQuantization>& quantization,
                                     QuantizationInputs inputs, int64_t axis,
                                     absl::string_view suffix = "");
// The inverse of DequantizeOf().
absl::StatusOr<Operand> QuantizeOf(NodeContext& context, const Operand& src,
                                   const std::optional<AxisQuantization>& quantization,
                                   QuantizationInputs inputs, int64_t axis, DataType type,
                                   absl::string_view suffix = "");
// Quantizes with a computed scale and zero point.
absl::StatusOr<Operand> QuantizeBy(NodeContext& context, const Operand& src, const Operand& scale,
                                   const Operand& zero_point, DataType type,
                                   absl::string_view suffix = "");

}  // namespace tilewire::graph

#endif  // ENGINE_GRAPH_OPS_QUANTIZATION_PARAMS_H_
