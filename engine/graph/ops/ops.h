// SPDX-License-Identifier: Apache-2.0
//
// What each file of this folder defines for the table. Each function lowers one ONNX operator and
// returns
//   kInvalidArgument  inputs or attributes that the operator does not allow
//   kUnimplemented    a use of it that the engine has no operation for
// Source: ONNX's operator documents, opsets 6 to 17.
#ifndef ENGINE_GRAPH_OPS_OPS_H_
#define ENGINE_GRAPH_OPS_OPS_H_

#include "engine/graph/specialization.h"

namespace tilewire::graph {

// elementwise.cc
absl::Status BuildAdd(NodeContext& context);
absl::Status BuildSub(NodeContext& context);
absl::Status BuildMul(NodeContext& context);
absl::Status BuildDiv(NodeContext& context);
absl::Status BuildMod(NodeContext& context);
absl::Status BuildPow(NodeContext& context);
absl::Status BuildPRelu(NodeContext& context);
absl::Status BuildAnd(NodeContext& context);
absl::Status BuildOr(NodeContext& context);
absl::Status BuildXor(NodeContext& context);
absl::Status BuildEqual(NodeContext& context);
absl::Status BuildLess(NodeContext& context);
absl::Status BuildLessOrEqual(NodeContext& context);
absl::Status BuildGreater(NodeContext& context);
absl::Status BuildGreaterOrEqual(NodeContext& context);
absl::Status BuildWhere(NodeContext& context);
absl::Status BuildMax(NodeContext& context);
absl::Status BuildMin(NodeContext& context);
absl::Status BuildMean(NodeContext& context);
absl::Status BuildSum(NodeContext& context);
// batch_normalization.cc
absl::Status BuildBatchNormalization(NodeContext& context);
// concat.cc
absl::Status BuildConcat(NodeContext& context);
// constant.cc
absl::Status BuildConstant(NodeContext& context);
// convolution.cc
absl::Status BuildConv(NodeContext& context);
// deconvolution.cc
absl::Status BuildConvTranspose(NodeContext& context);
// activation.cc
absl::Status BuildAbs(NodeContext& context);
absl::Status BuildClip(NodeContext& context);
absl::Status BuildElu(NodeContext& context);
absl::Status BuildExp(NodeContext& context);
absl::Status BuildHardSigmoid(NodeContext& context);
absl::Status BuildHardSwish(NodeContext& context);
absl::Status BuildLeakyRelu(NodeContext& context);
absl::Status BuildRelu(NodeContext& context);
absl::Status BuildSigmoid(NodeContext& context);
absl::Status BuildSoftplus(NodeContext& context);
absl::Status BuildSqrt(NodeContext& context);
absl::Status BuildTanh(NodeContext& context);
// gather.cc
absl::Status BuildGather(NodeContext& context);
// identity.cc
absl::Status BuildDropout(NodeContext& context);
absl::Status BuildIdentity(NodeContext& context);
// inner_product.cc
absl::Status BuildGemm(NodeContext& context);
absl::Status BuildMatMul(NodeContext& context);
// lrn.cc
absl::Status BuildLrn(NodeContext& context);
// normalization.cc
absl::Status BuildInstanceNormalization(NodeContext& context);
absl::Status BuildLayerNormalization(NodeContext& context);
absl::Status BuildMeanVarianceNormalization(NodeContext& context);
// pad.cc
absl::Status BuildPad(NodeContext& context);
// pooling.cc
absl::Status BuildAveragePool(NodeContext& context);
absl::Status BuildGlobalAveragePool(NodeContext& context);
absl::Status BuildGlobalMaxPool(NodeContext& context);
absl::Status BuildMaxPool(NodeContext& context);
// One window over everything behind the channels.
absl::StatusOr<ValueId> EmitGlobalPooling(NodeContext& context, Pooling::Algorithm algorithm,
                                          absl::string_view suffix = "");
// quantize_linear.cc
absl::Status BuildDequantizeLinear(NodeContext& context);
absl::Status BuildDynamicQuantizeLinear(NodeContext& context);
absl::Status BuildQuantizeLinear(NodeContext& context);
// qlinear.cc
absl::Status BuildConvInteger(NodeContext& context);
absl::Status BuildMatMulInteger(NodeContext& context);
absl::Status BuildQLinearConv(NodeContext& context);
absl::Status BuildQLinearMatMul(NodeContext& context);
// reduce.cc
absl::Status BuildGlobalLpPool(NodeContext& context);
absl::Status BuildReduceL1(NodeContext& context);
absl::Status BuildReduceL2(NodeContext& context);
absl::Status BuildReduceLogSum(NodeContext& context);
absl::Status BuildReduceLogSumExp(NodeContext& context);
absl::Status BuildReduceMax(NodeContext& context);
absl::Status BuildReduceMean(NodeContext& context);
absl::Status BuildReduceMin(NodeContext& context);
absl::Status BuildReduceProd(NodeContext& context);
absl::Status BuildReduceSum(NodeContext& context);
absl::Status BuildReduceSumSquare(NodeContext& context);
// repeat.cc
absl::Status BuildExpand(NodeContext& context);
absl::Status BuildTile(NodeContext& context);
// reshape.cc
absl::Status BuildFlatten(NodeContext& context);
absl::Status BuildReshape(NodeContext& context);
absl::Status BuildSqueeze(NodeContext& context);
absl::Status BuildUnsqueeze(NodeContext& context);
// resize.cc
absl::Status BuildResize(NodeContext& context);
// shape.cc
absl::Status BuildCast(NodeContext& context);
absl::Status BuildConstantOfShape(NodeContext& context);
absl::Status BuildRange(NodeContext& context);
absl::Status BuildShape(NodeContext& context);
absl::Status BuildSize(NodeContext& context);
// slice.cc
absl::Status BuildSlice(NodeContext& context);
absl::Status BuildSplit(NodeContext& context);
// softmax.cc
absl::Status BuildLogSoftmax(NodeContext& context);
absl::Status BuildSoftmax(NodeContext& context);
// space_depth.cc
absl::Status BuildDepthToSpace(NodeContext& context);
absl::Status BuildSpaceToDepth(NodeContext& context);
// top_k.cc
absl::Status BuildArgMax(NodeContext& context);
absl::Status BuildArgMin(NodeContext& context);
absl::Status BuildTopK(NodeContext& context);
// transpose.cc
absl::Status BuildTranspose(NodeContext& context);
// unary.cc
absl::Status BuildAcos(NodeContext& context);
absl::Status BuildAcosh(NodeContext& context);
absl::Status BuildAsin(NodeContext& context);
absl::Status BuildAsinh(NodeContext& context);
absl::Status BuildAtan(NodeContext& context);
absl::Status BuildAtanh(NodeContext& context);
absl::Status BuildCeil(NodeContext& context);
absl::Status BuildCelu(NodeContext& context);
absl::Status BuildCos(NodeContext& context);
absl::Status BuildCosh(NodeContext& context);
absl::Status BuildErf(NodeContext& context);
absl::Status BuildFloor(NodeContext& context);
absl::Status BuildIsInf(NodeContext& context);
absl::Status BuildIsNaN(NodeContext& context);
absl::Status BuildLog(NodeContext& context);
absl::Status BuildNeg(NodeContext& context);
absl::Status BuildNot(NodeContext& context);
absl::Status BuildReciprocal(NodeContext& context);
absl::Status BuildRound(NodeContext& context);
absl::Status BuildSelu(NodeContext& context);
absl::Status BuildShrink(NodeContext& context);
absl::Status BuildSign(NodeContext& context);
absl::Status BuildSin(NodeContext& context);
absl::Status BuildSinh(NodeContext& context);
absl::Status BuildSoftsign(NodeContext& context);
absl::Status BuildTan(NodeContext& context);
absl::Status BuildThresholdedRelu(NodeContext& context);

// The tensor that an attribute holds. kInvalidArgument: there is none, or it is malformed.
absl::StatusOr<ConstantPtr> TensorAttribute(const NodeContext& context, absl::string_view name);

// Indices that are computed are held in f32, which counts to 2^24 without gaps. kUnimplemented:
// among `size` elements there may be more.
absl::Status CheckCountable(const Node& node, int64_t size);

// An axis in [-rank, rank) counted from 0. kInvalidArgument: it is outside.
absl::StatusOr<int> NormalizeAxis(const Node& node, int64_t axis, size_t rank);

}  // namespace tilewire::graph

#endif  // ENGINE_GRAPH_OPS_OPS_H_
