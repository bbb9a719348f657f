// SPDX-License-Identifier: Apache-2.0
//
// LSTM, GRU and RNN: each is one operation Rnn (engine/network/recurrent.h). Gates that ONNX orders
// otherwise are put into the order of engine/functions/rnn_cell.h, those of known weights when the
// weights are packed.
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/recurrent/rnn_activations.h"
#include "engine/onnx/ops/shapes/moves.h"
#include "engine/onnx/ops/weights.h"

namespace tilewire::reader {

using network::Rnn;
namespace {

using functions::RnnCell;
using functions::RnnDirection;
using Order = std::vector<int64_t>;

// Known weights [D, G * outputs, inputs] as [1, D, inputs, G, outputs], gate g of which is gate
// order[g].
class GateWeights final : public network::StoredNumbers {
 public:
  GateWeights(ConstantPtr weights, Order order)
      : weights_(std::move(weights)), order_(std::move(order)) {}

  absl::StatusOr<HeldFloats> Load() const override {
    ABSL_ASSIGN_OR_RETURN(const HeldFloats held, network::LoadNumbers(*weights_));
    const int64_t inputs = weights_->dims[2], gates = static_cast<int64_t>(order_.size());
    const int64_t outputs = weights_->dims[1] / gates;
    auto turned = std::make_shared<std::vector<float>>();
    turned->reserve(held.values.size());
    for (int64_t d = 0; d < weights_->dims[0]; ++d) {
      for (int64_t i = 0; i < inputs; ++i) {
        for (int64_t gate : order_) {
          const float* column = held.values.data() + (d * gates + gate) * outputs * inputs + i;
          for (int64_t o = 0; o < outputs; ++o) turned->push_back(column[o * inputs]);
        }
      }
    }
    return HeldFloats{*turned, turned};
  }

  absl::Status Check() const override {
    return weights_->stored == nullptr ? absl::OkStatus() : weights_->stored->Check();
  }

 private:
  const ConstantPtr weights_;
  const Order order_;  // also counts the gates
};

// The differences between the three operators.
struct CellKind {
  RnnCell cell;
  Order gates;              // gate g of the cell is ONNX's gate gates[g]
  int first_state, memory;  // inputs; 0: there is none
  int peephole;
};

class Layer {
 public:
  Layer(NodeContext& context, const CellKind& kind) : context_(context), kind_(kind) {}

  absl::Status Build() {
    ABSL_RETURN_IF_ERROR(ReadAttributes());
    ABSL_RETURN_IF_ERROR(ReadSizes());
    ABSL_RETURN_IF_ERROR(AddLayer());
    ABSL_RETURN_IF_ERROR(AddWeights(1, Rnn::Role::kWeightsLayer, inputs_));
    ABSL_RETURN_IF_ERROR(AddWeights(2, Rnn::Role::kWeightsIter, states_));
    if (context_.Has(3)) ABSL_RETURN_IF_ERROR(AddBias());
    if (context_.Has(4)) ABSL_RETURN_IF_ERROR(AddLengths());
    if (Has(kind_.first_state)) ABSL_RETURN_IF_ERROR(AddState(kind_.first_state, Rnn::Role::kIter));
    if (Has(kind_.memory)) ABSL_RETURN_IF_ERROR(AddState(kind_.memory, Rnn::Role::kIterC));
    if (Has(kind_.peephole)) ABSL_RETURN_IF_ERROR(AddPeephole());
    return EmitAll();
  }

 private:
  bool Has(int i) const { return i > 0 && context_.Has(i); }
  int64_t Gates() const { return static_cast<int64_t>(kind_.gates.size()); }

  absl::Status ReadAttributes() {
    const Node& node = context_.node;
    rnn_.cell = kind_.cell;
    if (kind_.cell == RnnCell::kGru) {
      ABSL_ASSIGN_OR_RETURN(const int64_t linear, node.Int("linear_before_reset", 0));
      if (linear != 0) rnn_.cell = RnnCell::kLbrGru;
    }
    ABSL_ASSIGN_OR_RETURN(
        const std::string direction,
        node.OneOf("direction", "forward", {"forward", "reverse", "bidirectional"}));
    rnn_.direction = direction == "forward"   ? RnnDirection::kLeftToRight
                     : direction == "reverse" ? RnnDirection::kRightToLeft
                                              : RnnDirection::kBidirectionalConcat;
    directions_ = functions::DirectionsOf(rnn_.direction);
    ABSL_ASSIGN_OR_RETURN(rnn_.activations, ReadRnnActivations(node, rnn_.cell, directions_));
    ABSL_ASSIGN_OR_RETURN(rnn_.clip, node.Float("clip", 0));
    if (!(rnn_.clip >= 0)) return node.Invalid("clip ", rnn_.clip);
    ABSL_ASSIGN_OR_RETURN(const int64_t coupled, node.Int("input_forget", 0));
    rnn_.couples_gates = coupled != 0;
    ABSL_ASSIGN_OR_RETURN(const int64_t layout, node.Int("layout", 0));
    if (layout != 0 && (layout != 1 || node.opset() < 14)) return node.Invalid("layout ", layout);
    batch_first_ = layout == 1;
    return absl::OkStatus();
  }

  absl::Status ReadSizes() {
    const Dims &x = context_.input(0).dims, &r = context_.input(2).dims;
    if (x.size() != 3) return context_.node.Invalid("X is not of rank 3");
    steps_ = x[batch_first_ ? 1 : 0];
    sequences_ = x[batch_first_ ? 0 : 1];
    inputs_ = x[2];
    if (r.size() != 3) return context_.node.Invalid("R is not of rank 3");
    states_ = r[2];
    if (states_ > kLargestFold) return context_.node.TooLarge(states_, " states");
    ABSL_ASSIGN_OR_RETURN(const int64_t hidden, context_.node.Int("hidden_size", states_));
    if (hidden != states_)
      return context_.node.Invalid("hidden_size ", hidden, ", but R has ", states_);
    return absl::OkStatus();
  }

  absl::Status Expect(int i, const Dims& dims) const {
    if (context_.input(i).dims == dims) return absl::OkStatus();
    return context_.node.Invalid("input ", i, " has dims ", DimsToString(context_.input(i).dims),
                                 ", expected ", DimsToString(dims));
  }

  void AddSource(Rnn::Role role, ValueId value) {
    rnn_.roles.push_back(role);
    srcs_.push_back(value);
  }

  // A known tensor, or one that is computed.
  absl::Status Add(Rnn::Role role, const Operand& operand) {
    if (operand.constant != nullptr) {
      ABSL_ASSIGN_OR_RETURN(const ConstantPtr loaded, InMemory(operand.constant));
      rnn_.known.emplace_back(role, WeightsOf(loaded));
      return absl::OkStatus();
    }
    ABSL_ASSIGN_OR_RETURN(const ValueId value, context_.AsValue(operand));
    AddSource(role, value);
    return absl::OkStatus();
  }

  absl::Status AddLayer() {
    ABSL_ASSIGN_OR_RETURN(const ValueId given, context_.Runtime(0));
    Operand x{nullptr, given, context_.input(0).dims};
    if (batch_first_) {
      ABSL_ASSIGN_OR_RETURN(x, TurnedOf(context_, x, {1, 0, 2}, "/steps"));
    }
    AddSource(Rnn::Role::kLayer, x.value);
    return absl::OkStatus();
  }

  absl::Status AddWeights(int i, Rnn::Role role, int64_t inputs) {
    ABSL_RETURN_IF_ERROR(Expect(i, {directions_, Gates() * states_, inputs}));
    const Dims dims = {1, directions_, inputs, Gates(), states_};
    const Operand& given = context_.input(i);
    if (given.constant != nullptr) {
      ABSL_ASSIGN_OR_RETURN(const ConstantPtr constant, context_.FloatsInPlace(i));
      network::Weights weights;
      weights.key = absl::StrCat(constant->name, "/gates");
      weights.dims = dims;
      weights.stored = std::make_shared<const GateWeights>(constant, kind_.gates);
      rnn_.known.emplace_back(role, std::move(weights));
      return absl::OkStatus();
    }
    const std::string name = absl::StrCat("/weights", i);
    ABSL_ASSIGN_OR_RETURN(
        Operand weights,
        ReshapeOf(context_, given, {directions_, Gates(), states_, inputs}, name + "/apart"));
    ABSL_ASSIGN_OR_RETURN(weights, Ordered(weights, kind_.gates, name + "/ordered"));
    ABSL_ASSIGN_OR_RETURN(weights, TurnedOf(context_, weights, {0, 3, 1, 2}, name + "/turned"));
    ABSL_ASSIGN_OR_RETURN(weights, ReshapeOf(context_, weights, dims, name));
    return Add(role, weights);
  }

  // Dimension 1 in another order; -1 is for zeros.
  absl::StatusOr<Operand> Ordered(const Operand& src, const Order& order,
                                  absl::string_view suffix) {
    return SelectAlong(context_, src, 1, RunsOf(order), suffix);
  }

  // Input i, its elements in memory where they are known, under other dims.
  absl::StatusOr<Operand> Apart(int i, Dims dims, absl::string_view suffix) {
    Operand given = context_.input(i);
    if (given.constant != nullptr) {
      ABSL_ASSIGN_OR_RETURN(const ConstantPtr loaded, context_.Floats(i));
      given = OperandOf(loaded);
    }
    return ReshapeOf(context_, given, std::move(dims), suffix);
  }

  // The sum of the two halves of B, but those of the last gate of lbr_gru stay apart.
  absl::Status AddBias() {
    const int64_t gates = Gates();
    ABSL_RETURN_IF_ERROR(Expect(3, {directions_, 2 * gates * states_}));
    ABSL_ASSIGN_OR_RETURN(const Operand halves,
                          Apart(3, {directions_, 2 * gates, states_}, "/biases"));
    Order first = kind_.gates, second = kind_.gates;
    for (int64_t& gate : second) gate += gates;
    if (rnn_.cell == RnnCell::kLbrGru) {
      first.push_back(-1);
      second.insert(second.end() - 1, -1);
    }
    ABSL_ASSIGN_OR_RETURN(const Operand a, Ordered(halves, first, "/bias_w"));
    ABSL_ASSIGN_OR_RETURN(const Operand b, Ordered(halves, second, "/bias_r"));
    ABSL_ASSIGN_OR_RETURN(const Operand sum,
                          ElementwiseOf(context_, {Function::kAdd}, {a, b}, "/bias_sum"));
    ABSL_ASSIGN_OR_RETURN(
        const Operand bias,
        ReshapeOf(context_, sum, {1, directions_, static_cast<int64_t>(first.size()), states_},
                  "/bias"));
    return Add(Rnn::Role::kBias, bias);
  }

  // ONNX's order is i, o, f.
  absl::Status AddPeephole() {
    ABSL_RETURN_IF_ERROR(Expect(kind_.peephole, {directions_, 3 * states_}));
    ABSL_ASSIGN_OR_RETURN(const Operand apart,
                          Apart(kind_.peephole, {directions_, 3, states_}, "/peepholes"));
    ABSL_ASSIGN_OR_RETURN(const Operand ordered, Ordered(apart, {0, 2, 1}, "/peepholes_ordered"));
    ABSL_ASSIGN_OR_RETURN(const Operand peephole,
                          ReshapeOf(context_, ordered, {1, directions_, 3, states_}, "/peephole"));
    return Add(Rnn::Role::kPeephole, peephole);
  }

  absl::Status AddLengths() {
    ABSL_RETURN_IF_ERROR(Expect(4, {sequences_}));
    const Operand& lengths = context_.input(4);
    if (lengths.constant != nullptr) {
      ABSL_ASSIGN_OR_RETURN(const ConstantPtr known, context_.Ints(4));
      if (absl::c_all_of(known->ints, [this](int64_t length) { return length == steps_; }))
        return absl::OkStatus();
    }
    ABSL_ASSIGN_OR_RETURN(const ValueId value, context_.InType(lengths, DataType::kS32));
    AddSource(Rnn::Role::kSequenceLengths, value);
    return absl::OkStatus();
  }

  absl::Status AddState(int i, Rnn::Role role) {
    const Dims outside = batch_first_ ? Dims{sequences_, directions_, states_}
                                      : Dims{directions_, sequences_, states_};
    ABSL_RETURN_IF_ERROR(Expect(i, outside));
    if (context_.input(i).constant != nullptr) {
      ABSL_ASSIGN_OR_RETURN(const ConstantPtr known, context_.Floats(i));
      if (absl::c_all_of(known->floats, [](float element) { return element == 0; }))
        return absl::OkStatus();  // as exporters write what is the default
    }
    ABSL_ASSIGN_OR_RETURN(const ValueId given, context_.Runtime(i));
    const std::string name = absl::StrCat("/state", i);
    Operand state{nullptr, given, outside};
    if (batch_first_) {
      ABSL_ASSIGN_OR_RETURN(state, TurnedOf(context_, state, {1, 0, 2}, name + "/turned"));
    }
    ABSL_ASSIGN_OR_RETURN(state,
                          ReshapeOf(context_, state, {1, directions_, sequences_, states_}, name));
    AddSource(role, state.value);
    return absl::OkStatus();
  }

  absl::Status EmitAll() {
    rnn_.gives_iter = context_.IsRead(1);
    rnn_.gives_iter_c = kind_.cell == RnnCell::kLstm && context_.IsRead(2);
    const Dims all = {steps_ + rnn_.gives_iter + rnn_.gives_iter_c, sequences_,
                      directions_ * states_};
    const bool gives_memory = rnn_.gives_iter_c, gives_state = rnn_.gives_iter;
    ABSL_ASSIGN_OR_RETURN(const ValueId value,
                          context_.Emit(std::move(rnn_), std::move(srcs_), all, "/all"));
    const Operand dst{nullptr, value, all};
    if (context_.node.HasOutput(0)) {
      ABSL_ASSIGN_OR_RETURN(Operand y, StepsOf(dst, 0, steps_, "/y"));
      ABSL_RETURN_IF_ERROR(
          Finish(y, batch_first_ ? std::vector<int>{1, 0, 2, 3} : std::vector<int>{0, 2, 1, 3}, 0));
    }
    for (int i = 1; i < 3; ++i) {
      if (i == 1 ? !gives_state : !gives_memory) continue;
      const int64_t step = steps_ + (i == 2 && gives_state ? 1 : 0);
      ABSL_ASSIGN_OR_RETURN(Operand state, StepsOf(dst, step, 1, absl::StrCat("/last", i)));
      ABSL_RETURN_IF_ERROR(
          Finish(state, batch_first_ ? std::vector<int>{1, 2, 3} : std::vector<int>{2, 1, 3}, i));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Operand> StepsOf(const Operand& all, int64_t first, int64_t count,
                                  absl::string_view suffix) {
    ABSL_ASSIGN_OR_RETURN(const Operand steps,
                          SelectAlong(context_, all, 0, {{first, 1, count}}, suffix));
    return ReshapeOf(context_, steps, {count, sequences_, directions_, states_},
                     absl::StrCat(suffix, "/apart"));
  }

  // [count, N, D, H] with its dimensions in `order`, which may leave out a count of 1, as output i.
  absl::Status Finish(Operand src, std::vector<int> order, int i) {
    if (order.size() == 3) {
      ABSL_ASSIGN_OR_RETURN(src, ReshapeOf(context_, src, {sequences_, directions_, states_},
                                           absl::StrCat("/last", i, "/one")));
      for (int& axis : order) --axis;
    }
    std::vector<int> as_it_is(order.size());
    std::iota(as_it_is.begin(), as_it_is.end(), 0);
    if (order != as_it_is) {
      ABSL_ASSIGN_OR_RETURN(src, TurnedOf(context_, src, order, absl::StrCat("/turned", i)));
    }
    return context_.SetOutput(src, i);
  }

  NodeContext& context_;
  const CellKind& kind_;
  Rnn rnn_;
  std::vector<ValueId> srcs_;
  int64_t directions_ = 1, steps_ = 0, sequences_ = 0, inputs_ = 0, states_ = 0;
  bool batch_first_ = false;
};

absl::Status BuildLstm(NodeContext& context) {
  return Layer(context, {RnnCell::kLstm, {0, 2, 3, 1}, 5, 6, 7}).Build();
}
absl::Status BuildGru(NodeContext& context) {
  return Layer(context, {RnnCell::kGru, {0, 1, 2}, 5, 0, 0}).Build();
}
absl::Status BuildRnn(NodeContext& context) {
  return Layer(context, {RnnCell::kVanillaRnn, {0}, 5, 0, 0}).Build();
}

}  // namespace

TILEWIRE_OPERATORS(Recurrent) = {
    MayOmitFirst(TrainsRecurrent(
        {"GRU", 1, 3, 6,
         "activation_alpha activation_beta activations clip direction hidden_size layout "
         "linear_before_reset output_sequence",
         BuildGru})),
    MayOmitFirst(
        TrainsRecurrent({"LSTM", 1, 3, 8,
                         "activation_alpha activation_beta activations clip direction hidden_size "
                         "input_forget layout "
                         "output_sequence",
                         BuildLstm})),
    MayOmitFirst(TrainsRecurrent(
        {"RNN", 1, 3, 6,
         "activation_alpha activation_beta activations clip direction hidden_size layout "
         "output_sequence",
         BuildRnn})),
};

}  // namespace tilewire::reader
