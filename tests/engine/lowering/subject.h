// SPDX-License-Identifier: Apache-2.0
//
// A hand-made network (networks.h), loaded as a model, with inputs to run it on.
#ifndef TESTS_ENGINE_LOWERING_SUBJECT_H_
#define TESTS_ENGINE_LOWERING_SUBJECT_H_

#include <memory>
#include <utility>
#include <vector>

#include "engine/facade/loaded_model.h"
#include "tests/engine/lowering/network_builder.h"
#include "tests/engine/lowering/networks.h"
#include "tests/support/float_tensors.h"
#include "tests/support/oracle/interpreter.h"

namespace tilewire::testing {

using Tensor = std::vector<float>;
constexpr int64_t kImages = 5;  // the largest batch, of which others are prefixes

inline EngineOptions Options(cpu::Isa isa, int threads) {
  return {.max_isa = isa, .threads = threads, .threads_per_request = threads};
}

// One model, and pseudo-random inputs of kImages images.
struct Subject {
  Subject(network::Network (*make)(int64_t), const EngineOptions& options)
      : shared(std::make_shared<EngineShared>(options)),
        network(make(kImages)),
        model(LoadedModel::Create(network::HandMadeModel(make), shared).value()) {
    for (network::ValueId input : network.inputs) {
      const network::Value& value = network.values[input];
      inputs.push_back(network::PseudoRandom(value.name, *ElementCount(value.dims), -1, 1));
    }
  }

  absl::StatusOr<std::vector<Tensor>> Run(int64_t batch, Layout in, Layout out) const {
    std::vector<Tensor> bytes;
    std::vector<InputTensor> tensors;
    for (size_t i = 0; i < inputs.size(); ++i) {
      Dims dims = network.values[network.inputs[i]].dims;
      dims[0] = batch;
      Tensor images(inputs[i].begin(), inputs[i].begin() + inputs[i].size() / kImages * batch);
      bytes.push_back(in == Layout::kNhwc ? ChannelsLast(images, dims) : std::move(images));
      const absl::string_view all = BytesOf(bytes.back());
      tensors.push_back({dims, in, {all}});  // two images come in one piece, others in two
      if (batch != 2) tensors.back().pieces = {all.substr(0, 37), all.substr(37)};
    }
    std::vector<OutputRequest> requests;
    for (size_t i = 0; i < network.outputs.size(); ++i)
      requests.push_back({static_cast<int>(i), out});
    absl::StatusOr<std::vector<OutputTensor>> outputs = model->Run(tensors, requests, {});
    if (!outputs.ok()) return outputs.status();
    std::vector<Tensor> results;
    for (const OutputTensor& output : *outputs) results.push_back(FloatsOf(output.bytes));
    return results;
  }

  // The oracle's outputs for the inputs, rounded to f32.
  std::vector<Tensor> Expected() const {
    std::vector<Elements> exact;
    for (const Tensor& input : inputs) exact.emplace_back(input.begin(), input.end());
    std::vector<Tensor> expected;
    for (const Elements& output : Interpret(network, exact))
      expected.emplace_back(output.begin(), output.end());
    return expected;
  }

  std::shared_ptr<EngineShared> shared;
  network::Network network;
  std::shared_ptr<const Model> model;
  std::vector<Tensor> inputs;
};

}  // namespace tilewire::testing

#endif  // TESTS_ENGINE_LOWERING_SUBJECT_H_
