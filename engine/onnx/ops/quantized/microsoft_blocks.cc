// SPDX-License-Identifier: Apache-2.0
//
// Operators of ONNX Runtime whose weights are integers of few bits in blocks. The weights become
// f32 when they are packed. Source: ONNX Runtime's ContribOperators.md, version 1 of com.microsoft.
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/products/inner_product.h"
#include "engine/onnx/ops/quantized/block_quantization.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {
namespace {

// A matrix of integers of `bits` bits, packed in rows of whole bytes, in blocks of `block` columns.
struct PackedMatrix {
  int64_t rows = 0, columns = 0, bits = 4, block = 0;
  int64_t blocks() const { return (columns + block - 1) / block; }
  // The zero point of the integers where none is given.
  float middle() const { return static_cast<float>(int64_t{1} << (bits - 1)); }
};

absl::Status CheckPacked(const Node& node, const PackedMatrix& matrix) {
  if (matrix.bits != 2 && matrix.bits != 4 && matrix.bits != 8)
    return node.Unimplemented("weights of ", matrix.bits, " bits; supported are 2, 4 and 8");
  constexpr int64_t kMost = int64_t{1} << 31;
  const bool fits = matrix.rows >= 1 && matrix.rows <= kMost && matrix.columns >= 1 &&
                    matrix.columns <= kMost && matrix.block >= 16 && matrix.block <= kMost &&
                    (matrix.block & (matrix.block - 1)) == 0;
  if (fits) return absl::OkStatus();
  return node.Invalid("weights of ", matrix.rows, " rows and ", matrix.columns,
                      " columns in blocks of ", matrix.block,
                      "; a block is a power of two from 16 on");
}

// A known input of so many elements under other dims.
absl::StatusOr<ConstantPtr> Known(const NodeContext& context, int i, Dims dims,
                                  absl::string_view what) {
  const ConstantPtr& given = context.input(i).constant;
  if (given == nullptr) return context.node.Unimplemented(what, " that are computed at run time");
  if (given->count() != ElementCount(dims).value_or(-1))
    return context.node.Invalid(what, " of dims ", DimsToString(given->dims), ", expected ",
                                DimsToString(dims));
  return network::Reshaped(*given, given->name, std::move(dims));
}

// Integers in rows of bytes.
absl::StatusOr<ConstantPtr> Unpacked(const NodeContext& context, int i, int64_t rows,
                                     int64_t columns, int64_t row_bytes, int64_t bits,
                                     absl::string_view what) {
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr bytes, Known(context, i, {rows, row_bytes}, what));
  if (bytes->integers != DataType::kU8) return context.node.Invalid(what, " that are not of u8");
  return UnpackRows(bytes, columns, static_cast<int>(bits), absl::StrCat(bytes->name, "/unpacked"));
}

// Zero points are packed like weights, or real numbers.
absl::StatusOr<ConstantPtr> ZeroPoints(const NodeContext& context, int i,
                                       const PackedMatrix& matrix) {
  const Dims dims = {matrix.rows, matrix.blocks()};
  if (!context.Has(i)) return MakeFloats("", {1, 1}, {matrix.middle()});
  const ConstantPtr& given = context.input(i).constant;
  if (given != nullptr && given->is_float) {
    ABSL_ASSIGN_OR_RETURN(const ConstantPtr reals, Known(context, i, dims, "zero points"));
    return InMemory(reals);
  }
  const int64_t row_bytes = (matrix.blocks() * matrix.bits + 7) / 8;
  ABSL_ASSIGN_OR_RETURN(
      const ConstantPtr integers,
      Unpacked(context, i, matrix.rows, matrix.blocks(), row_bytes, matrix.bits, "zero points"));
  return InMemory(integers);
}

// The block of each column, where input `i` says it; columns that fill the last block do not count.
absl::StatusOr<std::vector<int64_t>> BlocksOfColumns(const NodeContext& context, int i,
                                                     const PackedMatrix& matrix) {
  if (!context.Has(i)) return std::vector<int64_t>();
  const Node& node = context.node;
  const ConstantPtr& given = context.input(i).constant;
  if (given == nullptr)
    return node.Unimplemented("group indices (g_idx) that are computed at run time");
  const int64_t count = given->count(), filled = matrix.blocks() * matrix.block;
  if (given->is_float || (count != matrix.columns && count != filled))
    return node.Invalid("group indices (g_idx) of dims ", DimsToString(given->dims), ", expected ",
                        matrix.columns, " integers");
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr held, InMemory(given));
  std::vector<int64_t> blocks(held->ints.begin(), held->ints.begin() + matrix.columns);
  for (const int64_t block : blocks) {
    if (block < 0 || block >= matrix.blocks())
      return node.Invalid("group index (g_idx) ", block, " of ", matrix.blocks(), " blocks");
  }
  return blocks;
}

// The inputs that say what the integers of a matrix stand for; -1: there is no such input.
struct BlockInputs {
  int integers, scales, zero_points, groups;
};

// The real numbers of the matrix.
absl::StatusOr<ConstantPtr> Reals(const NodeContext& context, const PackedMatrix& matrix,
                                  const BlockInputs& inputs, int64_t row_bytes) {
  ABSL_RETURN_IF_ERROR(CheckPacked(context.node, matrix));
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr integers,
                        Unpacked(context, inputs.integers, matrix.rows, matrix.columns, row_bytes,
                                 matrix.bits, "weights"));
  Blocks blocks = {.axis = 1, .size = matrix.block};
  ABSL_ASSIGN_OR_RETURN(blocks.scales,
                        Known(context, inputs.scales, {matrix.rows, matrix.blocks()}, "scales"));
  if (!blocks.scales->is_float) return context.node.Invalid("scales that are not real numbers");
  ABSL_ASSIGN_OR_RETURN(blocks.scales, InMemory(blocks.scales));
  for (const float scale : blocks.scales->floats) {  // of a block of zeros it may be 0
    if (!std::isfinite(scale)) return context.node.Invalid("a scale of ", scale);
  }
  ABSL_ASSIGN_OR_RETURN(blocks.zero_points, ZeroPoints(context, inputs.zero_points, matrix));
  ABSL_ASSIGN_OR_RETURN(blocks.of_elements, BlocksOfColumns(context, inputs.groups, matrix));
  return DequantizeBlocks(integers, std::move(blocks),
                          absl::StrCat(context.output_name(), "/weights"));
}

// A times the matrix turned, plus a bias.
absl::Status BuildMatMulNBits(NodeContext& context) {
  const Node& node = context.node;
  PackedMatrix matrix;
  ABSL_ASSIGN_OR_RETURN(matrix.rows, node.Int("N", 0));
  ABSL_ASSIGN_OR_RETURN(matrix.columns, node.Int("K", 0));
  ABSL_ASSIGN_OR_RETURN(matrix.bits, node.Int("bits", 4));
  ABSL_ASSIGN_OR_RETURN(matrix.block, node.Int("block_size", 0));
  ABSL_ASSIGN_OR_RETURN(const int64_t prepacked, node.Int("weight_prepacked", 0));
  if (prepacked != 0) return node.Unimplemented("weight_prepacked ", prepacked);
  ABSL_RETURN_IF_ERROR(CheckPacked(node, matrix));
  const int64_t row_bytes = matrix.blocks() * (matrix.block * matrix.bits / 8);
  ABSL_ASSIGN_OR_RETURN(
      const ConstantPtr weights,
      Reals(context, matrix, {.integers = 1, .scales = 2, .zero_points = 3, .groups = 4},
            row_bytes));
  ABSL_ASSIGN_OR_RETURN(const ValueId src, context.Runtime(0));
  const bool adds = context.Has(5);
  ABSL_ASSIGN_OR_RETURN(const ValueId product,
                        EmitMatMul(context, src, weights, adds ? "/sum" : "", /*turned=*/true));
  const Operand result = {nullptr, product, context.value(product).dims};
  if (!adds) return context.SetOutput(result);
  return context.SetOutput(ElementwiseOf(context, {Function::kAdd}, {result, context.input(5)}));
}

// Rows of a matrix: of u8 that holds integers of `bits` bits, or of integers of 4 bits.
absl::Status BuildGatherBlockQuantized(NodeContext& context) {
  const Node& node = context.node;
  PackedMatrix matrix;
  ABSL_ASSIGN_OR_RETURN(matrix.bits, node.Int("bits", 4));
  ABSL_ASSIGN_OR_RETURN(matrix.block, node.Int("block_size", 128));
  ABSL_ASSIGN_OR_RETURN(int64_t gather_axis, node.Int("gather_axis", 0));
  ABSL_ASSIGN_OR_RETURN(int64_t axis, node.Int("quantize_axis", 1));
  const Operand& data = context.input(0);
  const size_t rank = data.dims.size();
  ABSL_ASSIGN_OR_RETURN(axis, NormalizeAxis(node, axis, rank));
  ABSL_ASSIGN_OR_RETURN(gather_axis, NormalizeAxis(node, gather_axis, rank));
  if (data.constant == nullptr) return node.Unimplemented("a table that is computed at run time");
  if (data.constant->is_float || context.ElementType(0).is_small() || rank != 2 || axis != 1 ||
      gather_axis != 0)
    return node.Unimplemented("supported are rows of a matrix of u8, with blocks along its rows");
  matrix.rows = data.dims[0];
  if (matrix.bits > 0) matrix.columns = data.dims[1] * 8 / matrix.bits;
  ABSL_ASSIGN_OR_RETURN(
      const ConstantPtr table,
      Reals(context, matrix, {.integers = 0, .scales = 2, .zero_points = 3, .groups = -1},
            data.dims[1]));
  return context.SetOutput(GatherOf(context, OperandOf(table), context.input(1), 0));
}

}  // namespace

TILEWIRE_OPERATORS(MicrosoftBlocks) = {
    Quantized({"com.microsoft.GatherBlockQuantized", 1, 3, 4,
               "bits block_size gather_axis quantize_axis", BuildGatherBlockQuantized,
               Folds::kNever, LikeThirdInput}),
    Quantized({"com.microsoft.MatMulNBits", 1, 3, 6,
               "K N accuracy_level bits block_size weight_prepacked", BuildMatMulNBits}),
};

}  // namespace tilewire::reader
