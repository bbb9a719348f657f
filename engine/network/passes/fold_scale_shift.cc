// SPDX-License-Identifier: Apache-2.0
//
// With effective weights s[o] * w[o,...] and bias b[o], a factor f[o] and a shift t[o] after them
// give weights f[o] * s[o] * w[o,...] and bias f[o] * b[o] + t[o].
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/network/passes/editor.h"
#include "engine/network/passes/passes.h"

namespace tilewire::network {
namespace {

bool AllEqual(const Dims& dims, int64_t value) {
  return std::all_of(dims.begin(), dims.end(), [value](int64_t dim) { return dim == value; });
}

// dst[n,c,...] = data[c] * scale[c] * src[n,c,...] + bias[c]
bool IsScaleShift(const Convolution& convolution) {
  const Dims& weights = convolution.weights.dims;
  return convolution.groups == weights[0] &&
         AllEqual(Dims(weights.begin() + 1, weights.end()), 1) &&
         convolution.weights.stored == nullptr && convolution.weights.s8 == nullptr &&
         AllEqual(convolution.strides, 1) && AllEqual(convolution.padding_left, 0) &&
         AllEqual(convolution.padding_right, 0) && convolution.fused.empty();
}

// Returns the operation that computes `value`, up to reshapes of [N,C] to [N,C,1] and back; kNone
// unless every value on the way has one use.
int ProducerBehindReshapes(Editor& editor, ValueId value) {
  while (editor.use_count(value) == 1) {
    const int op = editor.producer(value);
    if (editor.As<Reshape>(op) == nullptr) return op;
    const ValueId src = editor.operation(op).srcs[0];
    const Dims &from = editor.dims(src), &to = editor.dims(value);
    const bool keeps_channels =
        from.size() >= 2 && to.size() >= 2 && from[0] == to[0] && from[1] == to[1];
    if (!keeps_channels) return Editor::kNone;
    value = src;
  }
  return Editor::kNone;
}

void Fold(const Convolution& factor, Weights* weights, std::vector<float>* bias) {
  const size_t channels = factor.weights.data.size();
  if (weights->scale.empty()) weights->scale.assign(channels, 1);
  if (bias->empty()) bias->assign(channels, 0);
  for (size_t c = 0; c < channels; ++c) {
    const float f =
        factor.weights.data[c] * (factor.weights.scale.empty() ? 1 : factor.weights.scale[c]);
    weights->scale[c] *= f;
    (*bias)[c] = (*bias)[c] * f + (factor.bias.empty() ? 0 : factor.bias[c]);
  }
  absl::StrAppend(&weights->key, "*", factor.weights.key);
  weights->own = weights->own || factor.weights.own;
}

// Whether operation `before` is an Op that takes the factor, which is then folded into it.
template <typename Op>
bool FoldsInto(int before, const Convolution& factor, Editor* editor) {
  Op* op = editor->As<Op>(before);
  if (op == nullptr || !op->fused.empty()) return false;
  Fold(factor, &op->weights, &op->bias);
  return true;
}

}  // namespace

void FoldScaleShift(Network* network) {
  ForEachOperation(network, [](Editor& editor, int i) {
    const Convolution* factor = editor.As<Convolution>(i);
    if (factor == nullptr || !IsScaleShift(*factor)) return;
    const ValueId src = editor.operation(i).srcs[0];
    const int before = ProducerBehindReshapes(editor, src);
    if (!FoldsInto<Convolution>(before, *factor, &editor) &&
        !FoldsInto<Deconvolution>(before, *factor, &editor) &&
        !FoldsInto<DynamicConvolution>(before, *factor, &editor) &&
        !FoldsInto<InnerProduct>(before, *factor, &editor)) {
      return;
    }
    editor.ReplaceUses(editor.operation(i).dst, src);
    editor.Remove(i);
  });
}

}  // namespace tilewire::network
