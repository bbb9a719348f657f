// SPDX-License-Identifier: Apache-2.0
//
// Reads an image between its elements, for the operators that do so. Each result takes the elements
// around its place in the source, each with a weight:
//
//   dst[n, c, h, w] = sum over taps i, j of weight_i * weight_j * src[n, c, row_i, column_j]
//
// where row_i and weight_i are those of tap i around rows[n, h, w], and so with columns.
#ifndef ENGINE_ONNX_OPS_SAMPLING_SAMPLER_H_
#define ENGINE_ONNX_OPS_SAMPLING_SAMPLER_H_

#include <string>

#include "absl/status/statusor.h"
#include "engine/onnx/node_context.h"

namespace tilewire::reader {

struct Sampling {
  std::string mode = "linear";    // or nearest, or cubic
  std::string padding = "zeros";  // or border, or reflection
  bool aligns_corners = false;    // reflection is at the outermost elements, not at their borders
};

// `src` is [N, C, H, W]; `rows` and `columns` are [N, h, w], in elements.
//   kUnimplemented  more elements than f32 counts
absl::StatusOr<Operand> SampleOf(NodeContext& context, const Operand& src, const Operand& rows,
                                 const Operand& columns, const Sampling& sampling,
                                 absl::string_view suffix = "");

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_OPS_SAMPLING_SAMPLER_H_
