// SPDX-License-Identifier: Apache-2.0
//
// Inputs of a model whose elements decide shapes: the shape that a Reshape reads, the ends of a
// Slice, the sizes of a Resize, or numbers that these are computed from. A network is built for
// their elements, as it is for the dims of all inputs, so they are few. Pure functions.
#ifndef ENGINE_ONNX_DECIDING_INPUTS_H_
#define ENGINE_ONNX_DECIDING_INPUTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/network/constant.h"
#include "engine/onnx/file/model_graph.h"
#include "engine/onnx/node_context.h"

namespace tilewire::reader {

// In elements, of one input.
inline constexpr int64_t kLargestDeciding = 1024;

// By the model's input: whether something that must be known when a network is built depends on its
// elements. Only inputs of numbers or truth values of at most two dimensions, and not of f16 or
// bf16, are found. `folded` is what FoldConstants() gave.
std::vector<bool> DecidingInputs(const ModelGraph& graph, const std::vector<Operand>& folded);

// The elements of such an input, row-major in `bytes`.
//   kInvalidArgument    bytes that do not fit the dims
//   kResourceExhausted  more than kLargestDeciding elements
absl::StatusOr<ConstantPtr> DecidingConstant(const std::string& name, DataType type,
                                             const Dims& dims, absl::string_view bytes);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_DECIDING_INPUTS_H_
