// SPDX-License-Identifier: Apache-2.0
//
// Code that the operators of quantized tensors share: reading scales and zero points, converting
// constants, and converting computed tensors.
#ifndef ENGINE_ONNX_OPS_QUANTIZED_QUANTIZATION_PARAMS_H_
#define ENGINE_ONNX_OPS_QUANTIZED_QUANTIZATION_PARAMS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/onnx/node_context.h"
#include "engine/onnx/ops/quantized/block_quantization.h"

namespace tilewire::reader {

// The parameters of a tensor: one set, or one per index of `axis`.
struct AxisQuantization {
  int axis = 0;
  std::vector<network::QuantizationParams> params = {network::QuantizationParams()};
};

// The inputs of a node that hold them. For -1 or an input that is left out: scale 1, zero point 0.
struct QuantizationInputs {
  int scale = -1, zero_point = -1;
  int64_t block = 0;  // > 0: so many neighbours along the axis have a scale and a zero point
};

// The parameters of a tensor of dims `dims`, along `axis` if there are as many as it has indices.
// nullopt: they are computed.
//   kInvalidArgument  counts that do not fit, scales that are not positive, zero points out of
//                     range
absl::StatusOr<std::optional<AxisQuantization>> ReadQuantization(const NodeContext& context,
                                                                 QuantizationInputs inputs,
                                                                 const Dims& dims, int64_t axis);

// The parameters of blocks along `axis` of a tensor of dims `dims`. Errors are those of
// ReadQuantization().
absl::StatusOr<std::optional<Blocks>> ReadBlocks(const NodeContext& context,
                                                 QuantizationInputs inputs, const Dims& dims,
                                                 int64_t axis);

// The type of a tensor, which is that of its zero point; kU8 if that is left out.
// kUnimplemented: it is not u8 or s8.
absl::StatusOr<DataType> TypeOfZeroPoint(const NodeContext& context, int input);

// Large constants are converted when they are needed.
absl::StatusOr<ConstantPtr> DequantizeConstant(const ConstantPtr& integers,
                                               const AxisQuantization& quantization,
                                               std::string name);
absl::StatusOr<ConstantPtr> QuantizeConstant(const ConstantPtr& floats,
                                             const AxisQuantization& quantization, ElementType type,
                                             std::string name, bool saturates = true);

// The real numbers of an operand of integers. Parameters are known (`quantization`) or computed
// (`inputs`).
absl::StatusOr<Operand> DequantizeOf(NodeContext& context, const Operand& src,
                                     const std::optional<AxisQuantization>& quantization,
                                     QuantizationInputs inputs, int64_t axis,
                                     absl::string_view suffix = "");
// The inverse, to integers of at most 16 bits, or to f8 and f4, whose zero point is 0; u16 and s16
// are held in f32. `saturates`: numbers too large for f8 become its largest.
absl::StatusOr<Operand> QuantizeOf(NodeContext& context, const Operand& src,
                                   const std::optional<AxisQuantization>& quantization,
                                   QuantizationInputs inputs, int64_t axis, ElementType type,
                                   absl::string_view suffix = "", bool saturates = true);
// The same with a computed scale and zero point.
absl::StatusOr<Operand> QuantizeBy(NodeContext& context, const Operand& src, const Operand& scale,
                                   const Operand& zero_point, ElementType type,
                                   absl::string_view suffix = "", bool saturates = true);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_OPS_QUANTIZED_QUANTIZATION_PARAMS_H_
