// SPDX-License-Identifier: Apache-2.0
//
// One row per operation of a network (engine/network/network.h): the function that lowers it, in
// the file named as the operation. To add an operation: its file, its declaration and its row here.
//
// Each function brings the sources into a layout that a primitive takes, appends the steps and
// binds the result. It returns
//   kUnimplemented      a combination that no primitive takes
//   kInvalidArgument    shapes that do not fit each other
//   kResourceExhausted  memory
#ifndef ENGINE_LOWERING_OPERATION_TABLE_H_
#define ENGINE_LOWERING_OPERATION_TABLE_H_

#include <tuple>

#include "absl/status/status.h"
#include "engine/lowering/plan/operation_context.h"
#include "engine/network/network.h"

namespace tilewire::lowering {

absl::Status LowerActivation(const network::Activation&, OperationContext&);
absl::Status LowerAttention(const network::Attention&, OperationContext&);
absl::Status LowerComputedConvolution(const network::ComputedConvolution&, OperationContext&);
absl::Status LowerConcat(const network::Concat&, OperationContext&);
absl::Status LowerConvert(const network::Convert&, OperationContext&);
absl::Status LowerConvolution(const network::Convolution&, OperationContext&);
absl::Status LowerDeconvolution(const network::Deconvolution&, OperationContext&);
absl::Status LowerDequantize(const network::Dequantize&, OperationContext&);
absl::Status LowerDynamicConvolution(const network::DynamicConvolution&, OperationContext&);
absl::Status LowerDynamicInnerProduct(const network::DynamicInnerProduct&, OperationContext&);
absl::Status LowerDynamicMatmul(const network::DynamicMatmul&, OperationContext&);
absl::Status LowerDynamicQuantize(const network::DynamicQuantize&, OperationContext&);
absl::Status LowerElementwise(const network::Elementwise&, OperationContext&);
absl::Status LowerGather(const network::Gather&, OperationContext&);
absl::Status LowerGatherChannels(const network::GatherChannels&, OperationContext&);
absl::Status LowerInnerProduct(const network::InnerProduct&, OperationContext&);
absl::Status LowerIntegerMatmul(const network::IntegerMatmul&, OperationContext&);
absl::Status LowerIntegerSum(const network::IntegerSum&, OperationContext&);
absl::Status LowerInterpolate(const network::Interpolate&, OperationContext&);
absl::Status LowerLayerNormalization(const network::LayerNormalization&, OperationContext&);
absl::Status LowerLiteral(const network::Literal&, OperationContext&);
absl::Status LowerLrn(const network::Lrn&, OperationContext&);
absl::Status LowerMatmul(const network::Matmul&, OperationContext&);
absl::Status LowerMaxWindow(const network::MaxWindow&, OperationContext&);
absl::Status LowerPooling(const network::Pooling&, OperationContext&);
absl::Status LowerQuantizationRange(const network::QuantizationRange&, OperationContext&);
absl::Status LowerQuantize(const network::Quantize&, OperationContext&);
absl::Status LowerReduce(const network::Reduce&, OperationContext&);
absl::Status LowerReshape(const network::Reshape&, OperationContext&);
absl::Status LowerRnn(const network::Rnn&, OperationContext&);
absl::Status LowerRoiAlign(const network::RoiAlign&, OperationContext&);
absl::Status LowerScaleBytes(const network::ScaleBytes&, OperationContext&);
absl::Status LowerSelect(const network::Select&, OperationContext&);
absl::Status LowerShuffle(const network::Shuffle&, OperationContext&);
absl::Status LowerSoftmax(const network::Softmax&, OperationContext&);
absl::Status LowerSum(const network::Sum&, OperationContext&);
absl::Status LowerTopK(const network::TopK&, OperationContext&);
absl::Status LowerTranspose(const network::Transpose&, OperationContext&);

template <typename Params>
struct OperationRow {
  absl::Status (*lower)(const Params&, OperationContext&);
  // The operation reorders a source to a layout of its own anyway, so that a Transpose in front of
  // it costs nothing as a view.
  bool absorbs_transpose = false;
  // The operation reads its sources by their strides: a Transpose in front of it, a Reshape that
  // cuts dimensions, and a Select of a box are views.
  bool reads_strides = false;
};

inline constexpr std::tuple kOperationTable = {
    OperationRow{LowerActivation},
    OperationRow{LowerAttention, /*absorbs_transpose=*/true, /*reads_strides=*/true},
    OperationRow{LowerComputedConvolution},
    OperationRow{LowerConcat},
    OperationRow{LowerConvert},
    OperationRow{LowerConvolution, /*absorbs_transpose=*/true},
    OperationRow{LowerDeconvolution},
    OperationRow{LowerDequantize},
    OperationRow{LowerDynamicConvolution},
    OperationRow{LowerDynamicInnerProduct},
    OperationRow{LowerDynamicMatmul, /*absorbs_transpose=*/true, /*reads_strides=*/true},
    OperationRow{LowerDynamicQuantize},
    OperationRow{LowerElementwise},
    OperationRow{LowerGather},
    OperationRow{LowerGatherChannels},
    OperationRow{LowerInnerProduct},
    OperationRow{LowerIntegerMatmul, /*absorbs_transpose=*/true, /*reads_strides=*/true},
    OperationRow{LowerIntegerSum},
    OperationRow{LowerInterpolate},
    OperationRow{LowerLayerNormalization, /*absorbs_transpose=*/true},
    OperationRow{LowerLiteral},
    OperationRow{LowerLrn},
    OperationRow{LowerMatmul},
    OperationRow{LowerMaxWindow},
    OperationRow{LowerPooling},
    OperationRow{LowerQuantizationRange},
    OperationRow{LowerQuantize},
    OperationRow{LowerReduce},
    OperationRow{LowerReshape},
    OperationRow{LowerRnn},
    OperationRow{LowerRoiAlign},
    OperationRow{LowerScaleBytes},
    OperationRow{LowerSelect},
    OperationRow{LowerShuffle},
    OperationRow{LowerSoftmax},
    OperationRow{LowerSum},
    OperationRow{LowerTopK},
    OperationRow{LowerTranspose},
};

// The row of an operation; one without a row does not compile.
template <typename Params>
constexpr const OperationRow<Params>& RowOf(const Params&) {
  return std::get<OperationRow<Params>>(kOperationTable);
}

}  // namespace tilewire::lowering

#endif  // ENGINE_LOWERING_OPERATION_TABLE_H_
