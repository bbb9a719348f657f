// SPDX-License-Identifier: Apache-2.0
//
// Takes rows by indices, for the operators that do so among other things.
#ifndef ENGINE_ONNX_OPS_SHAPES_GATHER_H_
#define ENGINE_ONNX_OPS_SHAPES_GATHER_H_

#include "absl/status/statusor.h"
#include "engine/onnx/node_context.h"

namespace tilewire::reader {

// dst[i..., j..., k...] = src[i..., indices[j...], k...], where the index is along `axis`, which is
// in [0, rank).
//   kInvalidArgument  a known index outside the source
//   kUnimplemented    computed indices of more elements than f32 counts
absl::StatusOr<Operand> GatherOf(NodeContext& context, const Operand& src, const Operand& indices,
                                 int axis, absl::string_view suffix = "");

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_OPS_SHAPES_GATHER_H_
