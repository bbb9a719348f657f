// SPDX-License-Identifier: Apache-2.0
//
// Edits a network: tracks the producer and the uses of each value while a pass rewires it.
// Operations keep their index until the editor is destroyed, which closes the gaps.
// Thread-compatible.
#ifndef ENGINE_NETWORK_PASSES_EDITOR_H_
#define ENGINE_NETWORK_PASSES_EDITOR_H_

#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "engine/network/network.h"
#include "engine/network/value_uses.h"

namespace tilewire::network {

class Editor {
 public:
  static constexpr int kNone = -1;

  explicit Editor(Network* network);
  ~Editor();
  Editor(const Editor&) = delete;

  Network& network() { return *network_; }
  int size() const { return static_cast<int>(network_->operations.size()); }
  bool removed(int op) const { return removed_[op]; }
  Operation& operation(int op) { return network_->operations[op]; }
  const Dims& dims(ValueId value) const { return network_->values[value].dims; }

  // Returns the operation that computes the value; kNone for an input or a parameter.
  int producer(ValueId value) const { return producer_[value]; }
  // As ValueUses() counts them.
  int use_count(ValueId value) const { return use_count_[value]; }

  // The operation as T; nullptr if it is another one, removed, or kNone.
  template <typename T>
  T* As(int op) {
    return op == kNone || removed_[op] ? nullptr : std::get_if<T>(&network_->operations[op].params);
  }

  // The sources of the operation if it is this function of elements; nullptr if it is another one.
  const std::vector<ValueId>* SourcesOf(int op, Function function) {
    const Elementwise* elementwise = As<Elementwise>(op);
    const bool is_it = elementwise != nullptr && elementwise->function == function;
    return is_it ? &operation(op).srcs : nullptr;
  }
  // The parameters of the operation if it is this function of one number; nullptr likewise.
  const functions::EltwiseOp* FunctionOf(int op, EltwiseAlgorithm function) {
    const Activation* activation = As<Activation>(op);
    const bool is_it = activation != nullptr && activation->op.function == function;
    return is_it ? &activation->op : nullptr;
  }
  // The factor by which the operation multiplies its source; nullopt if it does anything else.
  std::optional<float> FactorOf(int op) {
    const functions::EltwiseOp* linear = FunctionOf(op, EltwiseAlgorithm::kLinear);
    return linear != nullptr && linear->beta == 0 ? std::optional(linear->alpha) : std::nullopt;
  }

  void SetSource(int op, int i, ValueId value);
  void SetSources(int op, std::vector<ValueId> values);
  // Replaces every use of `from` by a use of `to`.
  void ReplaceUses(ValueId from, ValueId to);
  // Removes the operation; nothing may use its results.
  void Remove(int op);
  // Replaces `op` by `operation` and removes `old`, whose sources and parameters `operation` took
  // over.
  void Replace(int op, Operation operation, int old);

 private:
  Network* network_;
  std::vector<int> producer_;
  std::vector<int> use_count_;
  std::vector<bool> removed_;
};

// Calls `visit` for each operation, in their order, with an editor for all of them.
void ForEachOperation(Network* network, absl::FunctionRef<void(Editor& editor, int op)> visit);

bool HasSum(const std::vector<FusedStep>& steps);

// Whether the weights are s8, and few enough that sums of u8 times them fit 32 bits.
bool SumFits32Bits(const Weights& weights);

// The operation max(x, 0) that computes `value`, if `value` has one use; Editor::kNone otherwise.
int SoleRelu(Editor& editor, ValueId value);

// The convolution, 1 in each of `spatial` dimensions, that is the product for each pixel. Weights
// are [outputs, inputs].
Convolution ConvolutionOfPixels(InnerProduct product, size_t spatial);

// The factor by which the operation multiplies its source, if that is all and it is positive.
std::optional<float> PositiveFactor(const OperationParams& operation);

// 8-bit integers with one set of parameters, of an ordinary scale.
struct QuantizedValue {
  ValueId value = kNoValue;
  QuantizationParams params;
};
// The integers that a Dequantize made `real` of; nullopt if something else computes it.
std::optional<QuantizedValue> IntegersOf(Editor& editor, ValueId real);

}  // namespace tilewire::network

#endif  // ENGINE_NETWORK_PASSES_EDITOR_H_
