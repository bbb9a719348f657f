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

using functions::EltwiseAlgorithm;
using Function = Elementwise::Function;

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
  const int op = editor.producer(value);
  const Elementwise* difference = editor.As<Elementwise>(op);
  if (difference == nullptr || difference->function != Function::kSub) return std::nullopt;
  const std::vector<ValueId>& srcs = editor.operation(op).srcs;
  return MeanOf(editor, srcs[1]) == std::optional<ValueId>(srcs[0])
             ? std::optional<ValueId>(srcs[0])
             : std::nullopt;
}

std::optional<ValueId> SquareOf(Editor& editor, ValueId value) {
  const int op = editor.producer(value);
  const Activation* square = editor.As<Activation>(op);
  if (square != nullptr && square->op.function == EltwiseAlgorithm::kSquare)
    return editor.operation(op).srcs[0];
  const Elementwise* product = editor.As<Elementwise>(op);
  if (product == nullptr || product->function != Function::kMul) return std::nullopt;
  const std::vector<ValueId>& srcs = editor.operation(op).srcs;
  return srcs[0] == srcs[1] ? std::optional<ValueId>(srcs[0]) : std::nullopt;
}

const Constant* LiteralOf(Editor& editor, ValueId value) {
  const Literal* literal = editor.As<Literal>(editor.producer(value));
  return literal == nullptr ? nullptr : literal->constant.get();
}

// The value whose square root is taken.
std::optional<ValueId> RootOf(Editor& editor, ValueId value) {
  const int op = editor.producer(value);
  const Activation* root = editor.As<Activation>(op);
  if (root == nullptr) return std::nullopt;
  const functions::EltwiseOp& function = root->op;
  const bool is_root =
      function.function == EltwiseAlgorithm::kPow && function.alpha == 1 && function.beta == 0.5f;
  return is_root ? std::optional<ValueId>(editor.operation(op).srcs[0]) : std::nullopt;
}

// The epsilon of sqrt(mean of centred(x)^2 + epsilon), where `value` is that.
std::optional<float> DeviationOf(Editor& editor, ValueId value, ValueId x) {
  const auto shifted = RootOf(editor, value);
  if (!shifted) return std::nullopt;
  const int op = editor.producer(*shifted);
  const Activation* linear = editor.As<Activation>(op);
  if (linear == nullptr || linear->op.function != EltwiseAlgorithm::kLinear ||
      linear->op.alpha != 1) {
    return std::nullopt;
  }
  const float epsilon = linear->op.beta;
  const auto squares = MeanOf(editor, editor.operation(op).srcs[0]);
  const auto centred = squares ? SquareOf(editor, *squares) : std::nullopt;
  if (!centred || CentredOf(editor, *centred) != std::optional<ValueId>(x)) return std::nullopt;
  return epsilon;
}

void FuseQuotient(Editor& editor, int op) {
  const Elementwise* quotient = editor.As<Elementwise>(op);
  if (quotient == nullptr || quotient->function != Function::kDiv) return;
  const std::vector<ValueId> srcs = editor.operation(op).srcs;
  const auto x = CentredOf(editor, srcs[0]);
  const auto epsilon = x ? DeviationOf(editor, srcs[1], *x) : std::nullopt;
  if (!epsilon || editor.dims(*x).size() > 5) return;
  editor.SetSources(op, {*x});
  editor.operation(op).params = LayerNormalization{.epsilon = *epsilon};
}

// Returns the constant of one number per element of the row; empty if `value` is something else.
std::vector<float> RowOf(Editor& editor, ValueId value, int64_t columns) {
  const Constant* constant = LiteralOf(editor, value);
  if (constant == nullptr || constant->count() != columns ||
      static_cast<int64_t>(constant->floats.size()) != columns || constant->dims.empty() ||
      constant->dims.back() != columns) {
    return {};
  }
  return std::vector<float>(constant->floats.begin(), constant->floats.end());
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
    if (norm == nullptr || editor.use_count(srcs[s]) != 1) continue;
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
  {
    Editor editor(network);
    for (int i = 0; i < editor.size(); ++i) {
      FuseQuotient(editor, i);
      FuseRow(editor, i);
    }
  }
  // Mean and deviation no longer use x.
  RemoveDead(network);
}

}  // namespace tilewire::network
