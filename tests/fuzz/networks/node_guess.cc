// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/networks/node_guess.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "tests/support/random_choice.h"

namespace tilewire::testing {
namespace {

constexpr int kGuesses = 6;

// The number of outputs, for operators that may have several.
int GuessOutputs(Random& random, absl::string_view name) {
  if (name == "Split" || name == "TopK") return 2;
  if (name == "DynamicQuantizeLinear") return 3;
  return Chance(random, 5) ? static_cast<int>(random.Integer(1, 3)) : 1;
}

std::vector<Made> TryNode(NetworkMaker& maker, const reader::OpRow& row, const Made& x) {
  const std::string name(row.name);
  Guess guess = GuessInputs(maker, row, x);
  for (const onnx::AttributeProto& one : GuessAttributes(maker, row, x)) {
    const auto is_same = [&](const auto& other) { return other.name() == one.name(); };
    if (absl::c_none_of(guess.attributes, is_same)) guess.attributes.push_back(one);
  }
  if (row.max_inputs > 0) guess.inputs.insert(guess.inputs.begin(), x);
  const int outputs = GuessOutputs(maker.random(), row.name);
  return maker.Nodes(name, guess.inputs, guess.attributes, outputs);
}

}  // namespace

std::vector<Made> AddNodeOf(NetworkMaker& maker, const reader::OpRow& row, const Made& wanted) {
  if (row.since > maker.opset() && !absl::StartsWith(row.name, "com.microsoft")) return {};
  for (int i = 0; i < kGuesses; ++i) {
    Made x;
    if (row.max_inputs > 0)
      x = wanted.exists() && i < kGuesses / 2 ? wanted : GuessFirst(maker, row);
    std::vector<Made> results = TryNode(maker, row, x);
    if (!results.empty()) return results;
  }
  return {};
}

}  // namespace tilewire::testing
