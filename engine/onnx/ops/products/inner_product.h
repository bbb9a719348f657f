// SPDX-License-Identifier: Apache-2.0
//
// Products with a constant matrix, for the operators that contain one.
#ifndef ENGINE_ONNX_OPS_PRODUCTS_INNER_PRODUCT_H_
#define ENGINE_ONNX_OPS_PRODUCTS_INNER_PRODUCT_H_

#include "absl/status/statusor.h"
#include "engine/onnx/node_context.h"

namespace tilewire::reader {

// [..., I] x [I, O], or [O, I] if the right side is `turned`.
//   kInvalidArgument  sizes that do not fit
//   kUnimplemented    a right side whose rank is not 2
absl::StatusOr<ValueId> EmitMatMul(NodeContext& context, ValueId src, const ConstantPtr& right,
                                   absl::string_view suffix = "", bool turned = false);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_OPS_PRODUCTS_INNER_PRODUCT_H_
