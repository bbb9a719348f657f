// SPDX-License-Identifier: Apache-2.0
//
// The operation stands where the sum or relu did, behind all that it reads.
#include "engine/network/training/fuse_normalization.h"

#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "engine/network/passes/editor.h"

namespace tilewire::network {
namespace {

// The limit of max(x, 0) and of min(max(x, 0), limit) as a normalization has it; nullopt if the
// operation is neither.
std::optional<float> ReluLimitOf(Editor& editor, int op) {
  const Activation* activation = editor.As<Activation>(op);
  if (activation == nullptr) return std::nullopt;
  const functions::EltwiseOp& relu = activation->op;
  std::optional<float> limit;
  if (relu.function == EltwiseAlgorithm::kRelu && relu.alpha == 0)
    limit = BatchNormalization{}.relu_limit;
  if (relu.function == EltwiseAlgorithm::kBoundedRelu) limit = relu.alpha;
  if (relu.function == EltwiseAlgorithm::kClip && relu.alpha == 0) limit = relu.beta;
  return limit && *limit > 0 ? limit : std::nullopt;
}

// The normalization by the statistics of the batch that computes `value` for `op` alone; kNone if
// something before `op` reads its other results.
int NormalizationOf(Editor& editor, ValueId value, int op) {
  const int before = editor.producer(value);
  const BatchNormalization* norm = editor.As<BatchNormalization>(before);
  const bool is_open = norm != nullptr && !norm->uses_given_statistics && !norm->relu &&
                       editor.operation(before).dst == value && editor.use_count(value) == 1;
  if (!is_open) return Editor::kNone;
  for (int between = before + 1; between < op; ++between) {
    if (editor.removed(between)) continue;
    for (ValueId more : editor.operation(before).more_dsts) {
      if (absl::c_linear_search(editor.operation(between).srcs, more)) return Editor::kNone;
    }
  }
  return before;
}

// Puts the normalization where `op` is, whose result it has from now on.
void TakeOver(Editor& editor, int op, int before, BatchNormalization norm,
              std::optional<ValueId> adds) {
  Operation fused = editor.operation(before);
  fused.params = norm;
  fused.dst = editor.operation(op).dst;
  if (adds) fused.srcs.push_back(*adds);
  editor.Replace(op, std::move(fused), before);
}

void TakeRelu(Editor& editor, int op) {
  const std::optional<float> limit = ReluLimitOf(editor, op);
  if (!limit) return;
  const int before = NormalizationOf(editor, editor.operation(op).srcs[0], op);
  if (before == Editor::kNone) return;
  BatchNormalization norm = *editor.As<BatchNormalization>(before);
  norm.relu = true;
  norm.relu_limit = *limit;
  TakeOver(editor, op, before, norm, std::nullopt);
}

// The later one of two normalizations, so that the other one is computed before it.
void TakeSum(Editor& editor, int op) {
  if (editor.As<Sum>(op) == nullptr || editor.operation(op).srcs.size() != 2) return;
  int taken = Editor::kNone, addend = 0;
  for (int s : {0, 1}) {
    const int before = NormalizationOf(editor, editor.operation(op).srcs[s], op);
    if (before <= taken || editor.As<BatchNormalization>(before)->adds) continue;
    taken = before;
    addend = 1 - s;
  }
  if (taken == Editor::kNone) return;
  BatchNormalization norm = *editor.As<BatchNormalization>(taken);
  norm.adds = true;
  TakeOver(editor, op, taken, norm, editor.operation(op).srcs[addend]);
}

}  // namespace

void FuseNormalization(Network* network) {
  ForEachOperation(network, [](Editor& editor, int op) {
    TakeRelu(editor, op);
    TakeSum(editor, op);
  });
}

}  // namespace tilewire::network
