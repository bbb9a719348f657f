// SPDX-License-Identifier: Apache-2.0
//
// The operation stands where the sum did, behind scale and shift.
#include "engine/network/training/fuse_row_parameters.h"

#include <optional>

#include "engine/network/passes/editor.h"

namespace tilewire::network {
namespace {

// The value that is normalized, and the one that the result is multiplied by.
struct ScaledRows {
  ValueId src, scale;
  float epsilon;
};

// The product that computes `value`, which nothing else reads, if it is one of a normalization
// that nothing else reads, either, and of a value of dims `row`.
std::optional<ScaledRows> ScaledRowsOf(Editor& editor, ValueId value, const Dims& row) {
  const std::vector<ValueId>* factors = editor.SourcesOf(editor.producer(value), Function::kMul);
  if (factors == nullptr || editor.use_count(value) != 1) return std::nullopt;
  for (int f : {0, 1}) {
    const ValueId normal = (*factors)[f], scale = (*factors)[1 - f];
    const int op = editor.producer(normal);
    const LayerNormalization* norm = editor.As<LayerNormalization>(op);
    const bool is_bare = norm != nullptr && norm->scale.empty() && !norm->reads_parameters &&
                         !norm->saves_statistics && editor.use_count(normal) == 1;
    if (is_bare && editor.dims(scale) == row)
      return ScaledRows{editor.operation(op).srcs[0], scale, norm->epsilon};
  }
  return std::nullopt;
}

void TakeScaleAndShift(Editor& editor, int op) {
  const std::vector<ValueId>* terms = editor.SourcesOf(op, Function::kAdd);
  if (terms == nullptr) return;
  const Dims row = {editor.dims(editor.operation(op).dst).back()};
  for (int t : {0, 1}) {
    const ValueId shift = (*terms)[1 - t];
    if (editor.dims(shift) != row) continue;
    const std::optional<ScaledRows> scaled = ScaledRowsOf(editor, (*terms)[t], row);
    if (!scaled || editor.dims(scaled->src) != editor.dims(editor.operation(op).dst)) continue;
    editor.SetSources(op, {scaled->src, scaled->scale, shift});
    editor.operation(op).params =
        LayerNormalization{.epsilon = scaled->epsilon, .reads_parameters = true};
    return;
  }
}

}  // namespace

void FuseRowParameters(Network* network) { ForEachOperation(network, TakeScaleAndShift); }

}  // namespace tilewire::network
