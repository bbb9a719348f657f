// SPDX-License-Identifier: Apache-2.0
#include "engine/network/passes/editor.h"
#include "engine/network/passes/passes.h"

namespace tilewire::network {
namespace {

// Returns the constant of one number per output; nullptr if `value` is something else.
const Constant* NumbersOfOutputs(Editor& editor, ValueId value, int64_t outputs) {
  const Literal* literal = editor.As<Literal>(editor.producer(value));
  if (literal == nullptr) return nullptr;
  const Constant& constant = *literal->constant;
  const bool fits = constant.count() == outputs && !constant.dims.empty() &&
                    constant.dims.back() == outputs &&
                    static_cast<int64_t>(constant.floats.size()) == outputs;
  return fits ? &constant : nullptr;
}

// Returns the bias of the inner product that computes the rows of `value`, whatever its leading
// dimensions, if it may take one more term, and nothing else reads the rows.
std::vector<float>* BiasOfRows(Editor& editor, ValueId value) {
  const int64_t outputs = editor.dims(value).empty() ? 0 : editor.dims(value).back();
  while (editor.use_count(value) == 1 && !editor.dims(value).empty() &&
         editor.dims(value).back() == outputs) {
    const int op = editor.producer(value);
    if (DynamicInnerProduct* dynamic = editor.As<DynamicInnerProduct>(op))
      return dynamic->fused.empty() ? &dynamic->bias : nullptr;
    if (editor.As<Reshape>(op) == nullptr) {
      InnerProduct* product = editor.As<InnerProduct>(op);
      const bool takes = product != nullptr && product->fused.empty() &&
                         !product->src_quantization && !product->dst_quantization;
      return takes ? &product->bias : nullptr;
    }
    value = editor.operation(op).srcs[0];
  }
  return nullptr;
}

void TryBias(Editor& editor, int op) {
  if (editor.SourcesOf(op, Function::kAdd) == nullptr) return;
  for (int s = 0; s < 2; ++s) {
    const ValueId src = editor.operation(op).srcs[s], other = editor.operation(op).srcs[1 - s];
    const ValueId dst = editor.operation(op).dst;
    std::vector<float>* bias = BiasOfRows(editor, src);
    if (bias == nullptr || editor.dims(src) != editor.dims(dst)) continue;
    const Constant* numbers = NumbersOfOutputs(editor, other, editor.dims(src).back());
    if (numbers == nullptr) continue;
    bias->resize(numbers->floats.size(), 0);
    for (size_t o = 0; o < bias->size(); ++o) (*bias)[o] += numbers->floats[o];
    editor.ReplaceUses(dst, src);
    editor.Remove(op);
    return;
  }
}

}  // namespace

void FuseBias(Network* network) { ForEachOperation(network, TryBias); }

}  // namespace tilewire::network
