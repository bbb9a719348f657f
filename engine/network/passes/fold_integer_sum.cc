// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <utility>
#include <vector>

#include "engine/network/passes/editor.h"
#include "engine/network/passes/passes.h"

namespace tilewire::network {
namespace {

constexpr size_t kMostAddends = 8;

// The operations between the integers and their Quantize; nothing else uses their results.
struct Between {
  IntegerSum sum;
  std::vector<ValueId> integers;
  std::vector<int> operations;  // the last first
};

std::optional<Between> FindBetween(Editor& editor, ValueId real) {
  Between between;
  if (const int op = SoleRelu(editor, real); op != Editor::kNone) {
    between.sum.relu = true;
    between.operations.push_back(op);
    real = editor.operation(op).srcs[0];
  }
  std::vector<ValueId> addends = {real};
  if (const int op = editor.producer(real);
      editor.As<Sum>(op) != nullptr && editor.use_count(real) == 1) {
    addends = editor.operation(op).srcs;
    between.operations.push_back(op);
  }
  if (addends.size() > kMostAddends) return std::nullopt;
  for (ValueId addend : addends) {
    const std::optional<QuantizedValue> integers = IntegersOf(editor, addend);
    if (!integers) return std::nullopt;
    between.integers.push_back(integers->value);
    between.sum.src_quantization.push_back(integers->params);
  }
  return between;
}

}  // namespace

void FoldIntegerSum(Network* network) {
  ForEachOperation(network, [](Editor& editor, int i) {
    const Quantize* quantize = editor.As<Quantize>(i);
    if (quantize == nullptr || quantize->params.size() != 1) return;
    const QuantizationParams params = quantize->params[0];
    if (!IsOrdinary(params.scale)) return;
    std::optional<Between> between = FindBetween(editor, editor.operation(i).srcs[0]);
    if (!between) return;
    between->sum.dst_quantization = params;
    editor.operation(i).params = std::move(between->sum);
    editor.SetSources(i, std::move(between->integers));
    for (int op : between->operations) editor.Remove(op);
  });
}

}  // namespace tilewire::network
