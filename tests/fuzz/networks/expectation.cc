// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/networks/expectation.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "tests/support/oracle/interpreter.h"

namespace tilewire::testing {
namespace {

using network::Network;
using network::Operation;
using network::ValueId;
using Function = network::Elementwise::Function;

constexpr double kChange = 0x1p-16;
constexpr double kRounding = 0x1p-21;  // of each result: a few times that of f32
constexpr double kLargest = 1e6;       // of all values: f32 still counts in 1/16

double Changed(Random& random, double number) {
  return number * (1 + kChange * random.Uniform()) + kChange / 16 * random.Uniform();
}

// Literals and weights in memory, a little different.
class Change {
 public:
  explicit Change(Random& random) : random_(random) {}

  void operator()(network::Literal& literal) {
    if (!literal.constant->is_float || literal.constant->floats.empty()) return;
    literal.constant = network::MakeFloats(
        literal.constant->name, literal.constant->dims,
        Floats({literal.constant->floats.begin(), literal.constant->floats.end()}));
  }
  template <typename Params>
  void operator()(Params& params) {
    if constexpr (requires { params.weights.key; }) ChangeWeights(&params.weights);
  }

 private:
  std::vector<float> Floats(std::vector<float> numbers) {
    for (float& number : numbers) number = static_cast<float>(Changed(random_, number));
    return numbers;
  }
  void ChangeWeights(network::Weights* weights) {
    if (weights->data.empty()) return;
    auto changed =
        std::make_shared<std::vector<float>>(Floats({weights->data.begin(), weights->data.end()}));
    weights->data = *changed;
    weights->owner = std::move(changed);
  }

  Random& random_;
};

bool IsJump(const network::Elementwise& elementwise) {
  switch (elementwise.function) {
    case Function::kFloor:
    case Function::kCeil:
    case Function::kRound:
    case Function::kSign:
    case Function::kMod:
    case Function::kFloorMod:
    case Function::kTruncate:
    case Function::kThresholdedRelu:
    case Function::kShrink:
    case Function::kRoundBits:
      return true;
    default:
      return functions::IsPredicate(elementwise.function) ||
             functions::IsBitwise(elementwise.function);
  }
}

bool IsJump(const Operation& operation, const Network& network) {
  if (const auto* elementwise = std::get_if<network::Elementwise>(&operation.params)) {
    // A computed number as the condition: 0 in exact sums may be 1e-8 in others.
    const bool has_real_condition = elementwise->function == Function::kWhere &&
                                    network.values[operation.srcs[0]].type == DataType::kF32;
    return has_real_condition || IsJump(*elementwise);
  }
  if (const auto* activation = std::get_if<network::Activation>(&operation.params))
    return IsJump(activation->op);
  const bool chooses = std::holds_alternative<network::TopK>(operation.params) ||
                       std::holds_alternative<network::MaxWindow>(operation.params) ||
                       std::holds_alternative<network::Gather>(operation.params) ||
                       std::holds_alternative<network::RoiAlign>(operation.params);
  const auto* reduce = std::get_if<network::Reduce>(&operation.params);
  // f32 may have no number for a product of some of the factors.
  const bool vanishes = reduce != nullptr &&
                        reduce->function == network::Reduce::Function::kProduct &&
                        *ElementCount(network.values[operation.srcs[0]].dims) > 64;
  const bool rounds = std::holds_alternative<network::Convert>(operation.params) &&
                      network.values[operation.dst].type != DataType::kF32;
  return chooses || vanishes || rounds;
}

bool IsStep(const Operation& operation, const Network& network) {
  return std::holds_alternative<network::DynamicQuantize>(operation.params) ||
         std::holds_alternative<network::QuantizationRange>(operation.params) ||
         IsByte(network.values[operation.dst].type);
}

// The values that operations compute, as outputs.
Network WithAllValues(Network network) {
  network.outputs.clear();
  for (const Operation& operation : network.operations) network.outputs.push_back(operation.dst);
  return network;
}

// The size that the rounding of a result is relative to. Gates of recurrent layers, from 0 to 1,
// and normalized numbers make up small results, too, and where gates are nearly 0 or 1, or
// normalized numbers nearly 1 and -1, no change of the inputs moves them.
double SizeOfTerms(const Operation& operation, double result) {
  const bool is_normalized = std::holds_alternative<network::LayerNormalization>(operation.params);
  const bool has_terms_of_one =
      is_normalized || std::holds_alternative<network::Rnn>(operation.params);
  return has_terms_of_one ? std::max(1.0, std::abs(result)) : std::abs(result);
}

double LargestOf(const Elements& elements) {
  double largest = 0;
  for (const double element : elements) {
    if (!std::isfinite(element)) return INFINITY;
    largest = std::max(largest, std::abs(element));
  }
  return largest;
}

double Apart(const Elements& a, const Elements& b) {
  double most = 0;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    const double apart = std::abs(a[i] - b[i]);
    if (!(apart <= most)) most = apart;
  }
  return most;
}

}  // namespace

Expectation::Expectation(const Network& network, const std::vector<Elements>& inputs,
                         Random& random) {
  for (const Elements& value : Interpret(WithAllValues(network), inputs))
    is_comparable_ = is_comparable_ && LargestOf(value) <= kLargest;
  if (!is_comparable_) return;
  want_ = Interpret(network, inputs);
  bounds_.assign(want_.size(), 0);
  for (int run = 0; run < 2; ++run) {
    Network changed = network;
    std::vector<Elements> others = inputs;
    for (size_t i = 0; i < others.size(); ++i) {
      if (network.values[network.inputs[i]].type != DataType::kF32) continue;
      for (double& element : others[i]) element = Changed(random, element);
    }
    for (Operation& operation : changed.operations) std::visit(Change(random), operation.params);
    const std::vector<Elements> got =
        Interpret(changed, others, [&](const Operation& operation, Elements* elements) {
          if (changed.values[operation.dst].type != DataType::kF32) return;
          for (double& element : *elements) {
            if (element == std::trunc(element)) continue;
            element += kRounding * random.Uniform() * SizeOfTerms(operation, element);
          }
        });
    for (size_t o = 0; o < want_.size(); ++o) {
      bounds_[o] = std::max(bounds_[o], Apart(got[o], want_[o]));
      is_comparable_ = is_comparable_ && std::isfinite(LargestOf(got[o]));
    }
  }
  for (size_t o = 0; o < want_.size(); ++o)
    bounds_[o] = 4 * bounds_[o] + 3e-5 * LargestOf(want_[o]) + 1e-6;
  std::vector<Smoothness> of_values(network.values.size(), Smoothness::kContinuous);
  for (const Operation& operation : network.operations) {
    Smoothness& own = of_values[operation.dst];
    for (ValueId src : operation.srcs) own = std::max(own, of_values[src]);
    if (IsStep(operation, network)) own = std::max(own, Smoothness::kSteps);
    if (IsJump(operation, network)) own = Smoothness::kJumps;
  }
  for (ValueId output : network.outputs) smoothness_.push_back(of_values[output]);
}

std::string Expectation::Difference(size_t output, const Elements& got) const {
  const Elements& want = want_[output];
  if (got.size() != want.size())
    return absl::StrCat(got.size(), " elements, expected ", want.size());
  if (smoothness_[output] == Smoothness::kJumps) return "";
  const double apart = Apart(got, want);
  if (apart <= bounds_[output]) return "";
  if (smoothness_[output] == Smoothness::kSteps) {
    double error = 0, norm = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      error += (got[i] - want[i]) * (got[i] - want[i]);
      norm += want[i] * want[i];
    }
    const double steps = std::sqrt(static_cast<double>(want.size()));
    if (std::sqrt(error) <= 0.5 * std::sqrt(norm) + 1.1 * steps) return "";
  }
  std::string text = absl::StrCat("off by ", apart, ", allowed are ", bounds_[output], ":");
  for (size_t i = 0; i < std::min<size_t>(8, want.size()); ++i)
    absl::StrAppend(&text, " ", got[i], "/", want[i]);
  return text;
}

}  // namespace tilewire::testing
