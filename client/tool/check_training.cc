// SPDX-License-Identifier: Apache-2.0
#include "client/tool/check_training.h"

#include <memory>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "engine/engine.h"
#include "engine/trainer.h"

namespace tilewire::client {
namespace {

// The loss that takes outputs of any shape.
TrainingSpec AnySpec() {
  TrainingSpec spec;
  spec.losses = {{.kind = LossSpec::Kind::kMeanSquaredError}};
  return spec;
}

bool HasOpenSizes(const TensorSpec& input) {
  const auto sizes = absl::MakeConstSpan(input.dims);
  return input.any_rank || absl::c_any_of(sizes.subspan(sizes.empty() ? 0 : 1),
                                          [](int64_t size) { return size < 0; });
}

// The lines of a message that names all nodes without a gradient; any other message is one line.
std::vector<std::string> NodesOf(const std::string& message) {
  constexpr char kNext[] = "; node '";
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t next; (next = message.find(kNext, begin)) != std::string::npos; begin = next + 2)
    lines.push_back(message.substr(begin, next - begin));
  lines.push_back(message.substr(begin));
  return lines;
}

}  // namespace

CheckedTraining CheckTrainingOf(const std::string& path) {
  CheckedTraining checked;
  const auto engine = Engine::Create({.threads = 1});
  if (!engine.ok()) return {{std::string(engine.status().message())}};
  const auto trainer = CreateTrainer(engine->get(), path, AnySpec());
  if (!trainer.ok()) {
    checked.lacks = NodesOf(std::string(trainer.status().message()));
    return checked;
  }
  for (const ParameterSpec& parameter : (*trainer)->parameters()) {
    ++checked.parameters;
    checked.elements += ElementCount(parameter.dims).value_or(0);
  }
  // Notes of serving are printed beside this.
  for (const TrainingNote& note : (*trainer)->notes()) {
    if (note.kind != TrainingNote::Kind::kServing) checked.notes.push_back(note.text);
  }
  if (const size_t inputs = (*trainer)->signature().inputs.size(); inputs > 1) {
    checked.notes.push_back(absl::StrCat("it has ", inputs,
                                         " inputs: `tilewire train` takes models with one, the "
                                         "engine's library all"));
  }
  if (absl::c_any_of((*trainer)->signature().inputs, HasOpenSizes)) {
    checked.notes.emplace_back(
        "sizes of inputs are open, so that operations are looked at when a batch has them");
  }
  return checked;
}

}  // namespace tilewire::client
