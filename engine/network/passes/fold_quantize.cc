// SPDX-License-Identifier: Apache-2.0
//
// A Quantize after a convolution, inner product or matrix product of integers becomes the
// quantization of its result. A fused sum then adds integers of the same type, which its
// destination holds. Before that, a positive factor of a matrix product becomes part of its scale.
#include <optional>
#include <utility>

#include "engine/network/passes/editor.h"
#include "engine/network/passes/passes.h"

namespace tilewire::network {
namespace {

// The zero points of the result and of an addend take one more step each.
constexpr size_t kLongestIntegerChain = 2;

bool IsOfIntegers(const Operation& operation) {
  if (const auto* product = std::get_if<IntegerMatmul>(&operation.params))
    return !product->dst_quantization;
  if (const auto* convolution = std::get_if<Convolution>(&operation.params))
    return convolution->src_quantization && !convolution->dst_quantization;
  const auto* product = std::get_if<InnerProduct>(&operation.params);
  return product != nullptr && product->src_quantization && !product->dst_quantization;
}

void SetDstQuantization(const QuantizationParams& params, Operation* operation) {
  if (auto* convolution = std::get_if<Convolution>(&operation->params)) {
    convolution->dst_quantization = params;
  } else if (auto* product = std::get_if<IntegerMatmul>(&operation->params)) {
    product->dst_quantization = params;
  } else {
    std::get<InnerProduct>(operation->params).dst_quantization = params;
  }
}

// Replaces addends by their integers of `type`; returns false if one has none, or the chain is too
// long.
bool ReadIntegers(Editor& editor, DataType type, std::vector<FusedStep>* steps) {
  if (steps == nullptr) return true;
  if (steps->size() > kLongestIntegerChain) return false;
  for (FusedStep& step : *steps) {
    if (step.kind != FusedStep::Kind::kSum) continue;
    const std::optional<QuantizedValue> integers = IntegersOf(editor, step.addend);
    if (!integers || editor.network().values[integers->value].type != type) return false;
    step.addend = integers->value;
    step.quantization = integers->params;
  }
  return true;
}

// A positive factor of a product of integers that nothing else reads becomes part of a scale.
void FoldFactors(Editor& editor) {
  for (int i = 0; i < editor.size(); ++i) {
    if (editor.removed(i)) continue;
    const std::optional<float> factor = PositiveFactor(editor.operation(i).params);
    if (!factor) continue;
    const ValueId product = editor.operation(i).srcs[0];
    const int before = editor.producer(product);
    if (editor.As<IntegerMatmul>(before) == nullptr || editor.use_count(product) != 1 ||
        editor.network().values[product].type != DataType::kF32) {
      continue;
    }
    Operation folded = editor.operation(before);
    float& scale = std::get<IntegerMatmul>(folded.params).src_quantization.scale;
    scale *= *factor;
    if (!IsOrdinary(scale)) continue;
    folded.dst = editor.operation(i).dst;
    editor.Replace(i, std::move(folded), before);
  }
}

}  // namespace

void FoldQuantize(Network* network) {
  Editor editor(network);
  FoldFactors(editor);
  for (int i = 0; i < editor.size(); ++i) {
    const Quantize* quantize = editor.As<Quantize>(i);
    if (quantize == nullptr || quantize->params.size() != 1) continue;
    if (!IsOrdinary(quantize->params[0].scale)) continue;
    const ValueId real = editor.operation(i).srcs[0], integers = editor.operation(i).dst;
    const int before = editor.producer(real);
    if (before == Editor::kNone || editor.use_count(real) != 1) continue;
    Operation folded = editor.operation(before);
    if (!IsOfIntegers(folded) || network->values[folded.dst].type != DataType::kF32) continue;
    if (!ReadIntegers(editor, network->values[integers].type, FusedSteps(folded))) continue;
    SetDstQuantization(quantize->params[0], &folded);
    folded.dst = integers;
    editor.Replace(i, std::move(folded), before);
  }
}

}  // namespace tilewire::network
