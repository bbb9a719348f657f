// SPDX-License-Identifier: Apache-2.0
//
// The context in which a row of differentiation (gradients/gradients.h) works: one operation of the
// forward network, the gradient of its result, and the end of the network, to which it appends.
// Knows no operation in particular, but for those that gradients of many are made of.
// Thread-compatible.
#ifndef ENGINE_NETWORK_TRAINING_GRADIENT_CONTEXT_H_
#define ENGINE_NETWORK_TRAINING_GRADIENT_CONTEXT_H_

#include <string>
#include <vector>

#include "engine/network/network.h"

namespace tilewire::network {

class GradientContext {
 public:
  // `operation` is an index into the network's operations, whose result has the gradient.
  // `is_wanted` says of which values gradients are wanted; `contributions` collects what adds up to
  // them, in the order of Add(). Per value each.
  GradientContext(Network* network, size_t operation, ValueId gradient,
                  const std::vector<bool>& is_wanted,
                  std::vector<std::vector<ValueId>>* contributions);

  size_t src_count() const { return forward_.srcs.size(); }
  ValueId src(size_t i = 0) const { return forward_.srcs[i]; }
  ValueId more_dst(size_t i) const { return forward_.more_dsts[i]; }
  ValueId dst() const { return forward_.dst; }
  ValueId gradient() const { return gradient_; }
  // Whether the gradient by source i is wanted.
  bool Wants(size_t i) const { return is_wanted_[forward_.srcs[i]]; }
  Dims dims(ValueId value) const { return network_.values[value].dims; }
  DataType type(ValueId value) const { return network_.values[value].type; }

  // The result, of f32, of an operation that is appended.
  ValueId Append(OperationParams params, std::vector<ValueId> srcs, Dims dims);
  // A further result, of f32, of the last one.
  ValueId AppendResult(Dims dims);
  // The forward operation in the network, until something is appended.
  Operation& forward() { return network_.operations[operation_]; }
  // A further result of it, of this type.
  ValueId AppendForwardResult(DataType type, Dims dims);
  // Numbers that are known: of f32, or s64.
  ValueId AppendLiteral(ConstantPtr constant);

  // Functions of values, which broadcast.
  ValueId Compute(Function function, const std::vector<ValueId>& srcs);
  ValueId Scale(ValueId value, float factor, float shift = 0);
  ValueId Zero();  // [1]
  // The sum of `value` over what a tensor of `dims` repeats where it is broadcast to value's dims.
  ValueId SumTo(ValueId value, const Dims& dims);
  // The elements of `value` repeated along dimensions of 1.
  ValueId Repeat(ValueId value, const Dims& dims);

  // Adds `gradient`, of the dims of source i, to what the gradient of that source consists of.
  void Add(size_t i, ValueId gradient);

 private:
  ValueId NewValue(DataType type, Dims dims);

  Network& network_;
  const size_t operation_;
  const Operation forward_;  // a copy: the network grows
  const ValueId gradient_;
  const size_t first_value_;  // of those that are appended
  const std::vector<bool>& is_wanted_;
  std::vector<std::vector<ValueId>>& contributions_;
};

}  // namespace tilewire::network

#endif  // ENGINE_NETWORK_TRAINING_GRADIENT_CONTEXT_H_
