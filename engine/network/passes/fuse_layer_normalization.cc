// SPDX-License-Identifier: Apache-2.0
//
// (x - mean) / sqrt(mean of (x - mean)^2 + epsilon) along the last dimension, as exporters write
// it, is a layer normalization. A product with, then a sum of, a constant of one number per element
// of the row become its scale and shift.
#include <optional>

#include "engine/network/passes/editor.h"
#include "engine/network/passes/passes.h"

namespace tilewire::network {
namespace {

// Whether the pooling takes the mean of all that `src` has along the last dimension.
bool AveragesRows(const Pooling& pooling, const Dims& src) {
  Dims row(pooling.kernel.size(), 1);
  if (row.empty()) return false;
  row.back() = src.back();
  return pooling.algorithm == Pooling::Algorithm::kAvgExcludePadding && pooling.kernel == row &&
         pooling.padding_left == Dims(row.size(), 0);
}

// The source of a mean along the last dimension, which is kept with size 1.
std::optional<ValueId> MeanOf(Editor& editor, ValueId value) {
  const int op = editor.producer(value);
  const Reduce* reduce = editor.As<Reduce>(op);
  const Pooling* pooling = editor.As<Pooling>(op);
  if (reduce == nullptr && pooling == nullptr) return std::nullopt;
  const ValueId src = editor.operation(op).srcs[0];
  Dims expected = editor.dims(src);
  if (expected.size() < 2 || expected.back() == 1) return std::nullopt;
  const bool averages = reduce != nullptr ? reduce->function == Reduce::Function::kMean
                                          : AveragesRows(*pooling, expected);
  expected.back() = 1;
  return averages && editor.dims(value) == expected ? std::optional<ValueId>(src) : std::nullopt;
}

// The x of x - mean(x).
std::optional<ValueId> CentredOf(Editor& editor, ValueId value) {
  const std::vector<ValueId>* srcs = editor.SourcesOf(editor.producer(value), Function::kSub);
  if (srcs == nullptr) return std::nullopt;
  const std::optional<ValueId> x = (*srcs)[0];
  return MeanOf(editor, (*srcs)[1]) == x ? x : std::nullopt;
}

std::optional<ValueId> SquareOf(Editor& editor, ValueId value) {
  const int op = editor.producer(value);
  if (editor.FunctionOf(op, EltwiseAlgorithm::kSquare) != nullptr)
    return editor.operation(op).srcs[0];
  const std::vector<ValueId>* srcs = editor.SourcesOf(op, Function::kMul);
  const bool is_square = srcs != nullptr && (*srcs)[0] == (*srcs)[1];
  return is_square ? std::optional((*srcs)[0]) : std::nullopt;
}

// The value whose square root is taken.
std::optional<ValueId> RootOf(Editor& editor, ValueId value) {
  const int op = editor.producer(value);
  const functions::EltwiseOp* power = editor.FunctionOf(op, EltwiseAlgorithm::kPow);
  const bool is_root = power != nullptr && power->alpha == 1 && power->beta == 0.5f;
  return is_root ? std::optional(editor.operation(op).srcs[0]) : std::nullopt;
}

// The epsilon of sqrt(mean of centred(x)^2 + epsilon), where `value` is that.
std::optional<float> DeviationOf(Editor& editor, ValueId value, ValueId x) {
  const auto shifted = RootOf(editor, value);
  if (!shifted) return std::nullopt;
  const int op = editor.producer(*shifted);
  const functions::EltwiseOp* linear = editor.FunctionOf(op, EltwiseAlgorithm::kLinear);
  if (linear == nullptr || linear->alpha != 1) return std::nullopt;
  const float epsilon = linear->beta;
  const auto squares = MeanOf(editor, editor.operation(op).srcs[0]);
  const auto centred = squares ? SquareOf(editor, *squares) : std::nullopt;
  if (!centred || CentredOf(editor, *centred) != std::optional<ValueId>(x)) return std::nullopt;
  return epsilon;
}

void FuseQuotient(Editor& editor, int op) {
  const std::vector<ValueId>* srcs = editor.SourcesOf(op, Function::kDiv);
  const auto x = srcs != nullptr ? CentredOf(editor, (*srcs)[0]) : std::nullopt;
  const auto epsilon = x ? DeviationOf(editor, (*srcs)[1], *x) : std::nullopt;
  if (!epsilon || editor.dims(*x).size() > 5) return;
  editor.SetSources(op, {*x});
  editor.operation(op).params = LayerNormalization{.epsilon = *epsilon};
}

// Returns the constant of one number per element of the row; empty if `value` is something else.
std::vector<float> RowOf(Editor& editor, ValueId value, int64_t columns) {
  const Literal* literal = editor.As<Literal>(editor.producer(value));
  if (literal == nullptr) return {};
  const Constant& row = *literal->constant;
  if (row.count() != columns || static_cast<int64_t>(row.floats.size()) != columns ||
      row.dims.empty() || row.dims.back() != columns) {
    return {};
  }
  return std::vector<float>(row.floats.begin(), row.floats.end());
}

// norm(x) * row, or norm(x) + row where the norm has a scale and no shift yet.
void FuseRow(Editor& editor, int op) {
  const Elementwise* function = editor.As<Elementwise>(op);
  if (function == nullptr) return;
  const bool scales = function->function == Function::kMul;
  if (!scales && function->function != Function::kAdd) return;
  for (int s = 0; s < 2; ++s) {
    const std::vector<ValueId> srcs = editor.operation(op).srcs;
    const int before = editor.producer(srcs[s]);
    const LayerNormalization* norm = editor.As<LayerNormalization>(before);
    if (norm == nullptr || norm->reads_parameters || editor.use_count(srcs[s]) != 1) continue;
    const Dims& dims = editor.dims(srcs[s]);
    std::vector<float> row = RowOf(editor, srcs[1 - s], dims.back());
    if (row.empty() || editor.dims(editor.operation(op).dst) != dims) continue;
    LayerNormalization fused = *norm;
    if (scales && fused.scale.empty()) {
      fused.scale = std::move(row);
      fused.shift.assign(fused.scale.size(), 0);
    } else if (!scales) {
      if (fused.scale.empty()) fused.scale.assign(row.size(), 1);
      fused.shift.resize(row.size(), 0);
      for (size_t i = 0; i < row.size(); ++i) fused.shift[i] += row[i];
    } else {
      continue;
    }
    const ValueId x = editor.operation(before).srcs[0];
    editor.SetSources(op, {x});
    editor.operation(op).params = std::move(fused);
    return;
  }
}

}  // namespace

void FuseLayerNormalization(Network* network) {
  ForEachOperation(network, [](Editor& editor, int op) {
    FuseQuotient(editor, op);
    FuseRow(editor, op);
  });
  // Mean and deviation no longer use x.
  RemoveDead(network);
}

}  // namespace tilewire::network
