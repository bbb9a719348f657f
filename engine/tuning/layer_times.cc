// SPDX-License-Identifier: Apache-2.0
#include "engine/tuning/layer_times.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_split.h"
#include "engine/base/check.h"
#include "engine/tuning/qdq_file.h"

namespace tilewire::tuning {

// A step "first + second" is a chain.
absl::flat_hash_map<std::string, absl::Duration> TimesByNode(const Explanation& explanation) {
  absl::flat_hash_map<std::string, absl::Duration> times;
  for (const PlanStep& step : explanation.steps) {
    const std::vector<std::string> nodes = absl::StrSplit(step.node, " + ");
    for (const std::string& node : nodes)
      times[node] += step.time / static_cast<double>(nodes.size());
  }
  return times;
}

void TakeLeast(Explanation explanation, Explanation* least) {
  if (least->steps.empty()) {
    *least = std::move(explanation);
    return;
  }
  TILEWIRE_CHECK(explanation.steps.size() == least->steps.size(), "both are of one plan");
  least->run = std::min(least->run, explanation.run);
  for (size_t i = 0; i < least->steps.size(); ++i)
    least->steps[i].time = std::min(least->steps[i].time, explanation.steps[i].time);
}

std::vector<LayerTime> TimesOf(const std::vector<Layer>& layers, const Explanation& exact,
                               const Explanation* bf16, const Explanation* int8) {
  using Times = absl::flat_hash_map<std::string, absl::Duration>;
  const Times of_exact = TimesByNode(exact);
  const Times of_bf16 = bf16 == nullptr ? Times() : TimesByNode(*bf16);
  const Times of_int8 = int8 == nullptr ? Times() : TimesByNode(*int8);
  const auto time_in = [](const Times& times, const std::string& node) {
    const auto found = times.find(node);
    return found == times.end() ? absl::ZeroDuration() : found->second;
  };
  absl::flat_hash_map<std::string, int> readers;
  for (const Layer& layer : layers) ++readers[layer.input];
  std::vector<LayerTime> times;
  for (const Layer& layer : layers) {
    const absl::Duration conversion = time_in(of_int8, QuantizeNodeOf(layer.input));
    times.push_back({.exact = time_in(of_exact, layer.step),
                     .bf16 = time_in(of_bf16, layer.name),
                     .int8 = time_in(of_int8, layer.name) + conversion / readers[layer.input]});
  }
  return times;
}

}  // namespace tilewire::tuning
