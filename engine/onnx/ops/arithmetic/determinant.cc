// SPDX-License-Identifier: Apache-2.0
//
// Det of square matrices, by elimination with pivots, in double. Of computed matrices it runs
// between the stages of a model (engine/onnx/stages/cut.h).
#include <algorithm>
#include <cmath>

#include "engine/base/status_macros.h"
#include "engine/onnx/ops/ops.h"

namespace tilewire::reader {
namespace {

// `matrix` is [size, size]; it is overwritten.
double DeterminantOf(std::vector<double>& matrix, int64_t size) {
  double determinant = 1;
  for (int64_t k = 0; k < size; ++k) {
    int64_t pivot = k;
    for (int64_t row = k + 1; row < size; ++row) {
      if (std::abs(matrix[row * size + k]) > std::abs(matrix[pivot * size + k])) pivot = row;
    }
    if (matrix[pivot * size + k] == 0) return 0;
    if (pivot != k) {
      std::swap_ranges(&matrix[k * size], &matrix[k * size] + size, &matrix[pivot * size]);
      determinant = -determinant;
    }
    determinant *= matrix[k * size + k];
    for (int64_t row = k + 1; row < size; ++row) {
      const double share = matrix[row * size + k] / matrix[k * size + k];
      for (int64_t c = k; c < size; ++c) matrix[row * size + c] -= share * matrix[k * size + c];
    }
  }
  return determinant;
}

Dims DimsOfDeterminants(const Dims& matrices) {
  return matrices.size() < 2 ? Dims() : Dims(matrices.begin(), matrices.end() - 2);
}

absl::Status BuildDet(NodeContext& context) {
  const Node& node = context.node;
  const Dims dims = context.input(0).dims;
  if (dims.size() < 2 || dims.back() != dims[dims.size() - 2])
    return node.Invalid("of ", DimsToString(dims), ", which are not square matrices");
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr matrices, context.Floats(0));
  constexpr int64_t kLargest = 1024;  // rows: the work is their third power
  const int64_t size = dims.back(), area = size * size;
  if (size > kLargest) return node.Unimplemented("of more than ", kLargest, " rows");
  const Dims result = DimsOfDeterminants(dims);
  std::vector<float> determinants;
  for (int64_t i = 0, count = ElementCount(result).value_or(0); i < count; ++i) {
    ABSL_RETURN_IF_ERROR(context.Interrupted());
    const float* const first = matrices->floats.data() + i * area;
    std::vector<double> matrix(first, first + area);
    determinants.push_back(static_cast<float>(DeterminantOf(matrix, size)));
  }
  return context.SetOutput(MakeFloats(context.output_name(), result, std::move(determinants)));
}

}  // namespace

TILEWIRE_OPERATORS(Determinant) = {
    OfReals(Late({"Det", 11, 1, 1, "", BuildDet, Folds::kInMemory}, DimsOfDeterminants)),
};

}  // namespace tilewire::reader
