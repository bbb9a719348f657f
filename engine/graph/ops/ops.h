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
absl::Status LowerMod(NodeContext& context);
absl::Status LowerPow(NodeContext& context);
absl::Status LowerPRelu(NodeContext& context);
absl::Status LowerAnd(NodeContext& context);
absl::Status LowerOr(NodeContext& context);
absl::Status LowerXor(NodeContext& context);
absl::Status LowerEqual(NodeContext& context);
absl::Status LowerLess(NodeContext& context);
absl::Status LowerLessOrEqual(NodeContext& context);
absl::Status LowerGreater(NodeContext& context);
absl::Status LowerGreaterOrEqual(NodeContext& context);
absl::Status LowerWhere(NodeContext& context);
absl::Status LowerMax(NodeContext& context);
absl::Status LowerMin(NodeContext& context);
absl::Status LowerMean(NodeContext& context);
absl::Status LowerSum(NodeContext& context);
// batch_normalization.cc
absl::Status LowerBatchNormalization(NodeContext& context);
// concat.cc
absl::Status LowerConcat(NodeContext& context);
// constant.cc
absl::Status LowerConstant(NodeContext& context);
// convolution.cc
absl::Status LowerConv(NodeContext& context);
// deconvolution.cc
absl::Status LowerConvTranspose(NodeContext& context);
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
// lrn.cc
absl::Status LowerLrn(NodeContext& context);
// normalization.cc
absl::Status LowerInstanceNormalization(NodeContext& context);
absl::Status LowerLayerNormalization(NodeContext& context);
absl::Status LowerMeanVarianceNormalization(NodeContext& context);
// pad.cc
absl::Status LowerPad(NodeContext& context);
// pooling.cc
absl::Status LowerAveragePool(NodeContext& context);
absl::Status LowerGlobalAveragePool(NodeContext& context);
absl::Status LowerGlobalMaxPool(NodeContext& context);
absl::Status LowerMaxPool(NodeContext& context);
// One window over everything behind the channels.
absl::StatusOr<ValueId> EmitGlobalPooling(NodeContext& context, Pooling::Algorithm algorithm,
                                          absl::string_view suffix = "");
// quantize.cc
absl::Status LowerDequantizeLinear(NodeContext& context);
absl::Status LowerDynamicQuantizeLinear(NodeContext& context);
absl::Status LowerQuantizeLinear(NodeContext& context);
// quantized.cc
absl::Status LowerConvInteger(NodeContext& context);
absl::Status LowerMatMulInteger(NodeContext& context);
absl::Status LowerQLinearConv(NodeContext& context);
absl::Status LowerQLinearMatMul(NodeContext& context);
// reduce.cc
absl::Status LowerGlobalLpPool(NodeContext& context);
absl::Status LowerReduceL1(NodeContext& context);
absl::Status LowerReduceL2(NodeContext& context);
absl::Status LowerReduceLogSum(NodeContext& context);
absl::Status LowerReduceLogSumExp(NodeContext& context);
absl::Status LowerReduceMax(NodeContext& context);
absl::Status LowerReduceMean(NodeContext& context);
absl::Status LowerReduceMin(NodeContext& context);
absl::Status LowerReduceProd(NodeContext& context);
absl::Status LowerReduceSum(NodeContext& context);
absl::Status LowerReduceSumSquare(NodeContext& context);
// repeat.cc
absl::Status LowerExpand(NodeContext& context);
absl::Status LowerTile(NodeContext& context);
// reshape.cc
absl::Status LowerFlatten(NodeContext& context);
absl::Status LowerReshape(NodeContext& context);
absl::Status LowerSqueeze(NodeContext& context);
absl::Status LowerUnsqueeze(NodeContext& context);
// resize.cc
absl::Status LowerResize(NodeContext& context);
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
absl::Status LowerLogSoftmax(NodeContext& context);
absl::Status LowerSoftmax(NodeContext& context);
// space_depth.cc
absl::Status LowerDepthToSpace(NodeContext& context);
absl::Status LowerSpaceToDepth(NodeContext& context);
// top_k.cc
absl::Status LowerArgMax(NodeContext& context);
absl::Status LowerArgMin(NodeContext& context);
absl::Status LowerTopK(NodeContext& context);
// transpose.cc
absl::Status LowerTranspose(NodeContext& context);
// unary.cc
absl::Status LowerAcos(NodeContext& context);
absl::Status LowerAcosh(NodeContext& context);
absl::Status LowerAsin(NodeContext& context);
absl::Status LowerAsinh(NodeContext& context);
absl::Status LowerAtan(NodeContext& context);
absl::Status LowerAtanh(NodeContext& context);
absl::Status LowerCeil(NodeContext& context);
absl::Status LowerCelu(NodeContext& context);
absl::Status LowerCos(NodeContext& context);
absl::Status LowerCosh(NodeContext& context);
absl::Status LowerErf(NodeContext& context);
absl::Status LowerFloor(NodeContext& context);
absl::Status LowerIsInf(NodeContext& context);
absl::Status LowerIsNaN(NodeContext& context);
absl::Status LowerLog(NodeContext& context);
absl::Status LowerNeg(NodeContext& context);
absl::Status LowerNot(NodeContext& context);
absl::Status LowerReciprocal(NodeContext& context);
absl::Status LowerRound(NodeContext& context);
absl::Status LowerSelu(NodeContext& context);
absl::Status LowerShrink(NodeContext& context);
absl::Status LowerSign(NodeContext& context);
absl::Status LowerSin(NodeContext& context);
absl::Status LowerSinh(NodeContext& context);
absl::Status LowerSoftsign(NodeContext& context);
absl::Status LowerTan(NodeContext& context);
absl::Status LowerThresholdedRelu(NodeContext& context);

// The tensor that an attribute holds. kInvalidArgument: there is none, or it is malformed.
absl::StatusOr<ConstantPtr> TensorAttribute(const NodeContext& context, absl::string_view name);

// Indices that are computed are held in f32, which counts to 2^24 without gaps. kUnimplemented:
// among `size` elements there may be more.
absl::Status CheckCountable(const Node& node, int64_t size);

// An axis in [-rank, rank) counted from 0. kInvalidArgument: it is outside.
absl::StatusOr<int> NormalizeAxis(const Node& node, int64_t axis, size_t rank);

}  // namespace tilewire::graph

#endif  // ENGINE_GRAPH_OPS_OPS_H_
