// SPDX-License-Identifier: Apache-2.0
//
// The families of operators. Each has a file of this folder; the other files hold what several
// families share. An operator that gets a file of its own adds two lines here. Source: ONNX's
// operator documents, opsets 1 to 25.
#ifndef ENGINE_ONNX_OPS_OPS_H_
#define ENGINE_ONNX_OPS_OPS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/onnx/ops/op_row.h"

namespace tilewire::reader {

// A family's rows. The file has the function's name: ActivationOperators() is in activation.cc.
absl::Span<const OpRow> ActivationOperators();
absl::Span<const OpRow> AffineGridOperators();
absl::Span<const OpRow> AttentionOperators();
absl::Span<const OpRow> BatchNormalizationOperators();
absl::Span<const OpRow> BitwiseOperators();
absl::Span<const OpRow> CastOperators();
absl::Span<const OpRow> ColumnsOperators();
absl::Span<const OpRow> CompressOperators();
absl::Span<const OpRow> ConcatOperators();
absl::Span<const OpRow> ConstantOperators();
absl::Span<const OpRow> ControlFlowOperators();
absl::Span<const OpRow> ConvolutionOperators();
absl::Span<const OpRow> CumSumOperators();
absl::Span<const OpRow> DeconvolutionOperators();
absl::Span<const OpRow> DeformConvOperators();
absl::Span<const OpRow> DeterminantOperators();
absl::Span<const OpRow> EinsumOperators();
absl::Span<const OpRow> ElementwiseOperators();
absl::Span<const OpRow> FourierOperators();
absl::Span<const OpRow> FunctionOperators();  // functions.cc
absl::Span<const OpRow> GatherOperators();
absl::Span<const OpRow> GatherElementsOperators();
absl::Span<const OpRow> GridSampleOperators();
absl::Span<const OpRow> IdentityOperators();
absl::Span<const OpRow> InnerProductOperators();
absl::Span<const OpRow> LossOperators();
absl::Span<const OpRow> LpPoolOperators();
absl::Span<const OpRow> LrnOperators();
absl::Span<const OpRow> MaxUnpoolOperators();
absl::Span<const OpRow> MicrosoftOperators();
absl::Span<const OpRow> MicrosoftAttentionOperators();
absl::Span<const OpRow> MicrosoftBlocksOperators();
absl::Span<const OpRow> MicrosoftGroupQueryOperators();
absl::Span<const OpRow> MicrosoftQuantizedOperators();
absl::Span<const OpRow> NonMaxSuppressionOperators();
absl::Span<const OpRow> NormalizationOperators();
absl::Span<const OpRow> OneHotOperators();
absl::Span<const OpRow> PadOperators();
absl::Span<const OpRow> PoolingOperators();
absl::Span<const OpRow> QLinearOperators();
absl::Span<const OpRow> QuantizeLinearOperators();
absl::Span<const OpRow> RecurrentOperators();
absl::Span<const OpRow> ReduceOperators();
absl::Span<const OpRow> RepeatOperators();
absl::Span<const OpRow> ReshapeOperators();
absl::Span<const OpRow> ResizeOperators();
absl::Span<const OpRow> RoiAlignOperators();
absl::Span<const OpRow> ReverseSequenceOperators();
absl::Span<const OpRow> ScatterOperators();
absl::Span<const OpRow> SequenceOperators();
absl::Span<const OpRow> ShapeOperators();
absl::Span<const OpRow> SignalOperators();
absl::Span<const OpRow> SliceOperators();
absl::Span<const OpRow> SoftmaxOperators();
absl::Span<const OpRow> SpaceDepthOperators();
absl::Span<const OpRow> TopKOperators();
absl::Span<const OpRow> TransposeOperators();
absl::Span<const OpRow> TriangleOperators();
absl::Span<const OpRow> UnaryOperators();
absl::Span<const OpRow> UniqueOperators();

using OpFamily = absl::Span<const OpRow> (*)();
inline constexpr OpFamily kOpFamilies[] = {
    ActivationOperators,
    AffineGridOperators,
    AttentionOperators,
    BatchNormalizationOperators,
    BitwiseOperators,
    CastOperators,
    ColumnsOperators,
    CompressOperators,
    ConcatOperators,
    ConstantOperators,
    ControlFlowOperators,
    ConvolutionOperators,
    CumSumOperators,
    DeconvolutionOperators,
    DeformConvOperators,
    DeterminantOperators,
    EinsumOperators,
    ElementwiseOperators,
    FourierOperators,
    FunctionOperators,
    GatherOperators,
    GatherElementsOperators,
    GridSampleOperators,
    IdentityOperators,
    InnerProductOperators,
    LossOperators,
    LpPoolOperators,
    LrnOperators,
    MaxUnpoolOperators,
    MicrosoftOperators,
    MicrosoftAttentionOperators,
    MicrosoftBlocksOperators,
    MicrosoftGroupQueryOperators,
    MicrosoftQuantizedOperators,
    NonMaxSuppressionOperators,
    NormalizationOperators,
    OneHotOperators,
    PadOperators,
    PoolingOperators,
    QLinearOperators,
    QuantizeLinearOperators,
    RecurrentOperators,
    ReduceOperators,
    RepeatOperators,
    ReshapeOperators,
    ResizeOperators,
    RoiAlignOperators,
    ReverseSequenceOperators,
    ScatterOperators,
    SequenceOperators,
    ShapeOperators,
    SignalOperators,
    SliceOperators,
    SoftmaxOperators,
    SpaceDepthOperators,
    TopKOperators,
    TransposeOperators,
    TriangleOperators,
    UnaryOperators,
    UniqueOperators,
};

// The tensor that an attribute holds. kInvalidArgument: there is none, or it is malformed.
absl::StatusOr<network::ConstantPtr> TensorAttribute(const NodeContext& context,
                                                     absl::string_view name);

// A pooling whose window covers all spatial dimensions.
absl::StatusOr<network::ValueId> EmitGlobalPooling(NodeContext& context,
                                                   network::Pooling::Algorithm algorithm,
                                                   absl::string_view suffix = "");

// Computed indices are held in f32, which represents every integer up to 2^24. kUnimplemented:
// `size` elements have indices above that.
absl::Status CheckCountable(const Node& node, int64_t size);

// An axis in [-rank, rank), counted from 0. kInvalidArgument: it is outside.
absl::StatusOr<int> NormalizeAxis(const Node& node, int64_t axis, size_t rank);
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

// kInvalidArgument: the attribute `saturate`, which means something only for types that are refused
// (float8), is neither 0 nor 1.
absl::Status CheckSaturate(const Node& node);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_OPS_OPS_H_
