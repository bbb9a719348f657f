// SPDX-License-Identifier: Apache-2.0
#include "engine/network/passes/editor.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tilewire::network {

void ForEachOperation(Network* network, absl::FunctionRef<void(Editor& editor, int op)> visit) {
  Editor editor(network);
  for (int op = 0; op < editor.size(); ++op) visit(editor, op);
}

bool HasSum(const std::vector<FusedStep>& steps) {
  return std::any_of(steps.begin(), steps.end(),
                     [](const FusedStep& step) { return step.kind == FusedStep::Kind::kSum; });
}

bool SumFits32Bits(const Weights& weights) {
  // Products of u8 and s8, or of two differences of bytes where the weights have a zero point.
  const int64_t kMaxProducts = weights.zero_point == 0 ? 65793 : kMostProductsOfBytes;
  int64_t products = 1;
  for (size_t d = 1; d < weights.dims.size(); ++d) products *= weights.dims[d];
  if (weights.s8 == nullptr || products > kMaxProducts) return false;
  return std::all_of(weights.scale.begin(), weights.scale.end(),
                     [](float scale) { return IsOrdinary(std::abs(scale)); });
}

int SoleRelu(Editor& editor, ValueId value) {
  const int op = editor.producer(value);
  const functions::EltwiseOp* relu = editor.FunctionOf(op, EltwiseAlgorithm::kRelu);
  return relu != nullptr && relu->alpha == 0 && editor.use_count(value) == 1 ? op : Editor::kNone;
}

Convolution ConvolutionOfPixels(InnerProduct product, size_t spatial) {
  Convolution convolution{.weights = std::move(product.weights),
                          .bias = std::move(product.bias),
                          .strides = Dims(spatial, 1),
                          .dilations = Dims(spatial, 0),
                          .padding_left = Dims(spatial, 0),
                          .padding_right = Dims(spatial, 0),
                          .fused = std::move(product.fused),
                          .src_quantization = product.src_quantization,
                          .dst_quantization = product.dst_quantization};
  convolution.weights.dims.resize(2 + spatial, 1);
  return convolution;
}

std::optional<float> PositiveFactor(const OperationParams& operation) {
  const auto* activation = std::get_if<Activation>(&operation);
  if (activation == nullptr || activation->op.function != EltwiseAlgorithm::kLinear ||
      activation->op.beta != 0 || !(activation->op.alpha > 0)) {
    return std::nullopt;
  }
  return activation->op.alpha;
}

std::optional<QuantizedValue> IntegersOf(Editor& editor, ValueId real) {
  const int op = editor.producer(real);
  const Dequantize* dequantize = editor.As<Dequantize>(op);
  if (dequantize == nullptr || dequantize->params.size() != 1) return std::nullopt;
  const QuantizedValue integers = {editor.operation(op).srcs[0], dequantize->params[0]};
  const DataType type = editor.network().values[integers.value].type;
  if (!IsByte(type) || !IsOrdinary(integers.params.scale)) return std::nullopt;
  return integers;
}

Editor::Editor(Network* network)
    : network_(network),
      producer_(network->values.size(), kNone),
      use_count_(ValueUses(*network)),
      removed_(network->operations.size(), false) {
  for (int i = 0; i < size(); ++i) {
    producer_[operation(i).dst] = i;
    for (ValueId dst : operation(i).more_dsts) producer_[dst] = i;
  }
}

Editor::~Editor() {
  std::vector<Operation> kept;
  for (int i = 0; i < size(); ++i) {
    if (!removed_[i]) kept.push_back(std::move(operation(i)));
  }
  network_->operations = std::move(kept);
}

void Editor::SetSource(int op, int i, ValueId value) {
  --use_count_[operation(op).srcs[i]];
  ++use_count_[value];
  operation(op).srcs[i] = value;
}

void Editor::SetSources(int op, std::vector<ValueId> values) {
  AddUses(operation(op), -1, &use_count_);
  operation(op).srcs = std::move(values);
  AddUses(operation(op), 1, &use_count_);
}

void Editor::ReplaceUses(ValueId from, ValueId to) {
  for (int i = 0; i < size(); ++i) {
    if (removed_[i]) continue;
    for (size_t s = 0; s < operation(i).srcs.size(); ++s) {
      if (operation(i).srcs[s] == from) SetSource(i, static_cast<int>(s), to);
    }
    std::vector<FusedStep>* fused = FusedSteps(operation(i));
    for (size_t s = 0; fused != nullptr && s < fused->size(); ++s) {
      if ((*fused)[s].addend != from) continue;
      (*fused)[s].addend = to;
      --use_count_[from];
      ++use_count_[to];
    }
  }
  for (ValueId& output : network_->outputs) {
    if (output != from) continue;
    output = to;
    --use_count_[from];
    ++use_count_[to];
  }
}

void Editor::Remove(int op) {
  AddUses(operation(op), -1, &use_count_);
  producer_[operation(op).dst] = kNone;
  for (ValueId dst : operation(op).more_dsts) producer_[dst] = kNone;
  removed_[op] = true;
}

void Editor::Replace(int op, Operation replacement, int old) {
  Remove(old);
  AddUses(operation(op), -1, &use_count_);
  operation(op) = std::move(replacement);
  AddUses(operation(op), 1, &use_count_);
  producer_[operation(op).dst] = op;
  for (ValueId dst : operation(op).more_dsts) producer_[dst] = op;
}

}  // namespace tilewire::network
