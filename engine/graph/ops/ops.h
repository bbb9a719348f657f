// SPDX-License-Identifier: Apache-2.0
//
// What each file of this folder defines for the table. Each function lowers one ONNX operator and
// returns
//   kInvalidArgument  inputs or attributes that the operator does not allow
//   kUnimplemented    a use of it that the engine has no operation for
// Source: ONNX's operator documents, opsets 6 to 17.
#ifndef ENGINE_GRAPH_OPS_OPS_H_
#define ENGINE_GRAPH_OPS_OPS_H_

#include "engine/graph/lowering.h"

namespace tilewire::graph {

// arithmetic.cc
absl::Status LowerAdd(NodeContext& context);
absl::Status LowerSub(NodeContext& context);
absl::Status LowerMul(NodeContext& context);
absl::Status LowerDiv(NodeContext& context);
absl::Status LowerSum(NodeContext& context);
// batch_normalization.cc
absl::Status LowerBatchNormalization(NodeContext& context);
// concat.cc
absl::Status LowerConcat(NodeContext& context);
// constant.cc
absl::Status LowerConstant(NodeContext& context);
// convolution.cc
absl::Status LowerConv(NodeContext& context);
// eltwise.cc
absl::Status LowerAbs(NodeContext& context);
absl::Status LowerClip(NodeContext& context);
absl::Status LowerElu(NodeContext& context);
absl::Status LowerExp(NodeContext& context);
absl::Status LowerHardSigmoid(NodeContext& context);
absl::Status LowerHardSwish(NodeContext& context);
absl::Status LowerLeakyRelu(NodeContext& context);
absl::Status LowerRelu(NodeContext& context);
absl::Status LowerSigmoid(NodeContext& context);
absl::Status LowerSoftplus(NodeContext& context);
absl::Status LowerSqrt(NodeContext& context);
absl::Status LowerTanh(NodeContext& context);
// gather.cc
absl::Status LowerGather(NodeContext& context);
// identity.cc
absl::Status LowerDropout(NodeContext& context);
absl::Status LowerIdentity(NodeContext& context);
// inner_product.cc
absl::Status LowerGemm(NodeContext& context);
absl::Status LowerMatMul(NodeContext& context);
// pad.cc
absl::Status LowerPad(NodeContext& context);
// pooling.cc
absl::Status LowerAveragePool(NodeContext& context);
absl::Status LowerGlobalAveragePool(NodeContext& context);
absl::Status LowerGlobalMaxPool(NodeContext& context);
absl::Status LowerMaxPool(NodeContext& context);
absl::Status LowerReduceMean(NodeContext& context);
// repeat.cc
absl::Status LowerExpand(NodeContext& context);
absl::Status LowerTile(NodeContext& context);
// reshape.cc
absl::Status LowerFlatten(NodeContext& context);
absl::Status LowerReshape(NodeContext& context);
absl::Status LowerSqueeze(NodeContext& context);
absl::Status LowerUnsqueeze(NodeContext& context);
// shape.cc
absl::Status LowerCast(NodeContext& context);
absl::Status LowerConstantOfShape(NodeContext& context);
absl::Status LowerRange(NodeContext& context);
absl::Status LowerShape(NodeContext& context);
absl::Status LowerSize(NodeContext& context);
// slice.cc
absl::Status LowerSlice(NodeContext& context);
absl::Status LowerSplit(NodeContext& context);
// softmax.cc
absl::Status LowerSoftmax(NodeContext& context);
// space_depth.cc
absl::Status LowerDepthToSpace(NodeContext& context);
absl::Status LowerSpaceToDepth(NodeContext& context);
// transpose.cc
absl::Status LowerTranspose(NodeContext& context);

// The tensor that an attribute holds. kInvalidArgument: there is none, or it is malformed.
absl::StatusOr<ConstantPtr> TensorAttribute(const NodeContext& context, absl::string_view name);

// An axis in [-rank, rank) counted from 0. kInvalidArgument: it is outside.
absl::StatusOr<int> NormalizeAxis(const Node& node, int64_t axis, size_t rank);

}  // namespace tilewire::graph

#endif  // ENGINE_GRAPH_OPS_OPS_H_
