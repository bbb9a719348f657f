// SPDX-License-Identifier: Apache-2.0
//
// Turns constants into the weights of operations.
#ifndef ENGINE_ONNX_OPS_WEIGHTS_H_
#define ENGINE_ONNX_OPS_WEIGHTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/network/constant.h"
#include "engine/network/network.h"
#include "engine/onnx/node_context.h"

namespace tilewire::reader {

// Borrows the constant's elements and takes its name as key.
network::Weights WeightsOf(const ConstantPtr& constant);
// The same; where the constant was dequantized from 8-bit integers, these as s8, with a scale for
// each index of `output_axis`.
network::Weights WeightsOf(const ConstantPtr& constant, int output_axis);

// Input i as a vector of `length` floats. kInvalidArgument: another shape or type.
absl::StatusOr<std::vector<float>> ReadVector(const NodeContext& context, int i, int64_t length);

// Emits dst[n,c,...] = scale[c] * src[n,c,...] + shift[c] and makes it output 0. It is a depthwise
// convolution with a window of one element, which a pass folds into a convolution or inner product
// before it where there is one. src may be of rank 2 to 5.
absl::Status FinishScaleShift(NodeContext& context, ValueId src, std::vector<float> scale,
                              std::vector<float> shift);
// The same, not yet an output.
absl::StatusOr<ValueId> EmitScaleShift(NodeContext& context, ValueId src, std::vector<float> scale,
                                       std::vector<float> shift, absl::string_view suffix = "");

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_OPS_WEIGHTS_H_
