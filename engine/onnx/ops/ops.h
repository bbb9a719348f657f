// SPDX-License-Identifier: Apache-2.0
//
// The families of operators, op_families.inc. Each has a file of this folder; the other files hold
// what several families share. Source: ONNX's operator documents, opsets 1 to 25.
#ifndef ENGINE_ONNX_OPS_OPS_H_
#define ENGINE_ONNX_OPS_OPS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/onnx/ops/op_row.h"

namespace tilewire::reader {

#define TILEWIRE_OP_FAMILY(Name) absl::Span<const OpRow> Name##Operators();
#include "engine/onnx/ops/op_families.inc"
#undef TILEWIRE_OP_FAMILY

// The rows of each.
using OpFamily = absl::Span<const OpRow> (*)();
inline constexpr OpFamily kOpFamilies[] = {
#define TILEWIRE_OP_FAMILY(Name) Name##Operators,
#include "engine/onnx/ops/op_families.inc"
#undef TILEWIRE_OP_FAMILY
};

// The tensor that an attribute holds. kInvalidArgument: there is none, or it is malformed.
absl::StatusOr<ConstantPtr> TensorAttribute(const NodeContext& context, absl::string_view name);

// A pooling whose window covers all spatial dimensions.
absl::StatusOr<ValueId> EmitGlobalPooling(NodeContext& context,
                                          network::Pooling::Algorithm algorithm,
                                          absl::string_view suffix = "");

// Computed indices are held in f32, which represents every integer up to 2^24. kUnimplemented:
// `size` elements have indices above that.
absl::Status CheckCountable(const Node& node, int64_t size);

// An axis in [-rank, rank), counted from 0. kInvalidArgument: it is outside.
absl::StatusOr<int> NormalizeAxis(const Node& node, int64_t axis, size_t rank);
// The same of the attribute `axis`, or of `absent` where there is none.
absl::StatusOr<int> ReadAxis(const Node& node, int64_t absent, size_t rank);
// Resolves an index into `size` elements; a negative index counts from the end. It is element
// `place` of `input`.
//   kInvalidArgument  an index outside the size; the message names it and those that are allowed
absl::StatusOr<int64_t> NormalizeIndex(const Node& node, int64_t index, int64_t size, int input,
                                       size_t place);
// The same for several, which must differ.
absl::StatusOr<std::vector<int>> DistinctAxes(const Node& node, absl::Span<const int64_t> axes,
                                              size_t rank);

// The attribute `p` of poolings, 2 where it is absent; a real number before opset 2.
//   kUnimplemented  one that is not an integer
absl::StatusOr<int64_t> ReadPower(const Node& node);

// The attribute `saturate`, which says what numbers too large for f8 become. kInvalidArgument: it
// is neither 0 nor 1.
absl::StatusOr<bool> ReadSaturate(const Node& node);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_OPS_OPS_H_
