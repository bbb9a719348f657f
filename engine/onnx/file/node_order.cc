// SPDX-License-Identifier: Apache-2.0
//
// Kahn's algorithm.
#include "engine/onnx/file/node_order.h"

#include <functional>
#include <queue>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace tilewire::reader {

absl::Status OrderNodes(std::vector<Node>* nodes) {
  absl::flat_hash_map<TensorId, int> producers;
  for (size_t i = 0; i < nodes->size(); ++i) {
    for (TensorId output : (*nodes)[i].outputs) producers[output] = static_cast<int>(i);
  }
  producers.erase(kNoTensor);
  std::vector<std::vector<int>> consumers(nodes->size());
  std::vector<int> waits_for(nodes->size(), 0);
  std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
  for (size_t i = 0; i < nodes->size(); ++i) {
    for (const std::vector<TensorId>* read : {&(*nodes)[i].inputs, &(*nodes)[i].captures}) {
      for (TensorId input : *read) {
        const auto producer = producers.find(input);
        if (producer == producers.end()) continue;
        consumers[producer->second].push_back(static_cast<int>(i));
        ++waits_for[i];
      }
    }
    if (waits_for[i] == 0) ready.push(static_cast<int>(i));
  }
  std::vector<Node> ordered;
  ordered.reserve(nodes->size());
  while (!ready.empty()) {
    const int next = ready.top();
    ready.pop();
    ordered.push_back((*nodes)[next]);
    for (int consumer : consumers[next]) {
      if (--waits_for[consumer] == 0) ready.push(consumer);
    }
  }
  for (size_t i = 0; i < nodes->size() && ordered.size() < nodes->size(); ++i) {
    if (waits_for[i] > 0) return (*nodes)[i].Invalid("is in a cycle, or depends on one");
  }
  *nodes = std::move(ordered);
  return absl::OkStatus();
}

}  // namespace tilewire::reader
