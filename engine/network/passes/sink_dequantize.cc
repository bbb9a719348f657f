// SPDX-License-Identifier: Apache-2.0
//
// Integers are ordered like the real numbers that they stand for, so an operation that only moves
// or compares elements may run before the Dequantize. Then a Quantize meets the Dequantize that it
// undoes. A positive factor, as of the scores of attention, becomes part of the Dequantize's scale.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/network/passes/editor.h"
#include "engine/network/passes/passes.h"

namespace tilewire::network {
namespace {

// Goes through the operations once, in order, and rewrites them.
class Sink {
 public:
  explicit Sink(Network* network)
      : network_(network),
        renamed_(network->values.size(), kNoValue),
        made_by_(network->values.size(), kNobody) {}

  void Run() {
    for (Operation& operation : network_->operations) {
      for (ValueId& src : operation.srcs) src = NameOf(src);
      TakeFactor(&operation);
      if (Cancels(operation)) continue;
      if (const Dequantize* before = CommonDequantize(operation); before != nullptr) {
        Swap(std::move(operation), Dequantize(*before));
      } else {
        Append(std::move(operation));
      }
    }
    for (ValueId& output : network_->outputs) output = NameOf(output);
    network_->operations = std::move(done_);
  }

 private:
  static constexpr int kNobody = -1;

  DataType TypeOf(ValueId value) const { return network_->values[value].type; }
  ValueId NameOf(ValueId value) const {
    return renamed_[value] == kNoValue ? value : renamed_[value];
  }

  void Append(Operation operation) {
    made_by_[operation.dst] = static_cast<int>(done_.size());
    done_.push_back(std::move(operation));
  }

  // Returns the operation that makes the value if it is a T, else nullptr.
  template <typename T>
  const Operation* MadeBy(ValueId value) const {
    if (made_by_[value] == kNobody) return nullptr;
    const Operation& operation = done_[made_by_[value]];
    return std::holds_alternative<T>(operation.params) ? &operation : nullptr;
  }

  // Returns the Dequantize of 8-bit integers, with one scale, that makes the value; else nullptr.
  const Operation* DequantizeOf(ValueId value) const {
    const Operation* operation = MadeBy<Dequantize>(value);
    if (operation == nullptr || TypeOf(operation->srcs[0]) == DataType::kF32) return nullptr;
    return std::get<Dequantize>(operation->params).params.size() == 1 ? operation : nullptr;
  }

  // Makes a Dequantize of a positive factor of what a Dequantize gives.
  void TakeFactor(Operation* operation) const {
    const std::optional<float> factor = PositiveFactor(operation->params);
    const Operation* before = factor ? DequantizeOf(operation->srcs[0]) : nullptr;
    if (before == nullptr) return;
    Dequantize scaled = std::get<Dequantize>(before->params);
    scaled.params[0].scale *= *factor;
    if (!IsOrdinary(scaled.params[0].scale)) return;
    operation->params = std::move(scaled);
    operation->srcs = before->srcs;
  }

  // Whether it is a Quantize back to its source's integers, or one that repeats an earlier one.
  bool Cancels(const Operation& operation) {
    const auto* quantize = std::get_if<Quantize>(&operation.params);
    if (quantize == nullptr) return false;
    const Operation* before = DequantizeOf(operation.srcs[0]);
    if (before != nullptr && TypeOf(before->srcs[0]) == TypeOf(operation.dst) &&
        std::get<Dequantize>(before->params).params == quantize->params) {
      renamed_[operation.dst] = before->srcs[0];
      return true;
    }
    const auto same = std::find_if(done_.begin(), done_.end(), [&](const Operation& other) {
      const auto* done = std::get_if<Quantize>(&other.params);
      return done != nullptr && other.srcs == operation.srcs && *done == *quantize &&
             TypeOf(other.dst) == TypeOf(operation.dst);
    });
    if (same == done_.end()) return false;
    renamed_[operation.dst] = same->dst;
    return true;
  }

  // Whether it only moves or compares elements, and any element that it adds is exact.
  static bool Moves(const OperationParams& operation, const QuantizationParams& params,
                    DataType type) {
    if (const auto* pooling = std::get_if<Pooling>(&operation))
      return pooling->algorithm == Pooling::Algorithm::kMax;
    if (const auto* select = std::get_if<Select>(&operation))
      return DequantizeElement(QuantizeElement(select->fill, params, type), params) == select->fill;
    return std::holds_alternative<Reshape>(operation) ||
           std::holds_alternative<Transpose>(operation) ||
           std::holds_alternative<Shuffle>(operation) || std::holds_alternative<Concat>(operation);
  }

  // Returns the Dequantize that made all sources, if the operation may run before it.
  const Dequantize* CommonDequantize(const Operation& operation) const {
    const Operation* first = operation.srcs.empty() ? nullptr : DequantizeOf(operation.srcs[0]);
    if (first == nullptr) return nullptr;
    const auto& common = std::get<Dequantize>(first->params);
    const DataType type = TypeOf(first->srcs[0]);
    if (!Moves(operation.params, common.params[0], type)) return nullptr;
    for (ValueId src : operation.srcs) {
      const Operation* other = DequantizeOf(src);
      if (other == nullptr || TypeOf(other->srcs[0]) != type ||
          std::get<Dequantize>(other->params).params != common.params)
        return nullptr;
    }
    return &common;
  }

  void Swap(Operation operation, Dequantize dequantize) {
    const ValueId real = operation.dst;
    for (ValueId& src : operation.srcs) src = DequantizeOf(src)->srcs[0];
    const Value& value = network_->values[real];
    Value integers{absl::StrCat(value.name, "/integers"), TypeOf(operation.srcs[0]), value.dims};
    operation.dst = static_cast<ValueId>(network_->values.size());
    network_->values.push_back(std::move(integers));
    renamed_.push_back(kNoValue);
    made_by_.push_back(kNobody);
    if (auto* select = std::get_if<Select>(&operation.params)) {
      select->fill = QuantizeElement(select->fill, dequantize.params[0], TypeOf(operation.dst));
    }
    Operation after{operation.name, std::move(dequantize), {operation.dst}, real};
    Append(std::move(operation));
    Append(std::move(after));
  }

  Network* network_;
  std::vector<Operation> done_;
  std::vector<ValueId> renamed_;
  std::vector<int> made_by_;  // of each value: index into done_
};

}  // namespace

void SinkDequantize(Network* network) { Sink(network).Run(); }

}  // namespace tilewire::network
