// SPDX-License-Identifier: Apache-2.0
//
// Times one ONNX model in the engine alone, without a server:
//
//   bazel run //tests/bench:model_bench -- --model=resnet50.onnx --batch=1 --threads=1
//
// Prints load time, the median and the fastest run, and a line per step with its median.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "engine/base/status_macros.h"
#include "engine/engine.h"

namespace tilewire {
namespace {

struct Options {
  std::string model, max_isa = "best";
  int64_t batch = 1;
  int threads = 1, runs = 15;
  bool steps = true;
};

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// Inputs of one batch; values in [0, 1) that repeat with a period that is no power of two.
struct Inputs {
  Inputs(const ModelSignature& signature, int64_t batch) {
    for (const TensorSpec& spec : signature.inputs) {
      Dims dims = spec.dims;
      dims[0] = batch;
      std::vector<float>& values = bytes.emplace_back(*ElementCount(dims));
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1009) / 1009;
      tensors.push_back(
          {dims,
           Layout::kNchw,
           {{reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)}}});
    }
  }
  std::vector<std::vector<float>> bytes;
  std::vector<InputTensor> tensors;
};

absl::Status Measure(const Options& options) {
  EngineOptions engine_options{.threads = options.threads, .threads_per_request = options.threads};
  ABSL_ASSIGN_OR_RETURN(engine_options.max_isa, cpu::ParseIsa(options.max_isa));
  ABSL_ASSIGN_OR_RETURN(const auto engine, Engine::Create(engine_options));
  const absl::Time load_start = absl::Now();
  ABSL_ASSIGN_OR_RETURN(const auto model, engine->LoadModel(options.model));
  std::printf("load    %8.1f ms\n", absl::ToDoubleMilliseconds(absl::Now() - load_start));

  const Inputs inputs(model->signature(), options.batch);
  std::vector<absl::Time> starts;  // of each step, and the end
  const RunOptions run_options{.interrupted = [&] {
    starts.push_back(absl::Now());
    return absl::OkStatus();
  }};
  std::vector<double> totals;
  std::vector<std::vector<double>> steps;
  for (int run = 0; run < options.runs + 1; ++run) {
    starts.clear();
    const absl::Time start = absl::Now();
    ABSL_RETURN_IF_ERROR(model->Run(inputs.tensors, {}, run_options).status());
    starts.push_back(absl::Now());
    if (run == 0) continue;  // warms the plan and the pools
    totals.push_back(absl::ToDoubleMilliseconds(starts.back() - start));
    steps.resize(starts.size() - 1);
    for (size_t i = 0; i < steps.size(); ++i) {
      steps[i].push_back(absl::ToDoubleMicroseconds(starts[i + 1] - starts[i]));
    }
  }
  std::printf("median  %8.3f ms\nfastest %8.3f ms\n", Median(totals),
              *std::min_element(totals.begin(), totals.end()));
  if (!options.steps) return absl::OkStatus();
  ABSL_ASSIGN_OR_RETURN(const std::vector<PlanStep> plan, model->Explain(options.batch));
  // The rows of the inputs come first.
  for (size_t i = 0; i < steps.size(); ++i) {
    const PlanStep& step = plan[i + inputs.tensors.size()];
    std::printf("%9.1f us  %-32s %s  %s\n", Median(steps[i]), step.implementation.c_str(),
                step.node.c_str(), step.description.c_str());
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace tilewire

int main(int argc, char** argv) {
  tilewire::Options options;
  CLI::App app{"Times one ONNX model in the engine alone"};
  app.add_option("--model", options.model, "ONNX file")->required();
  app.add_option("--batch", options.batch, "images a run")->check(CLI::PositiveNumber);
  app.add_option("--threads", options.threads, "compute threads")->check(CLI::PositiveNumber);
  app.add_option("--runs", options.runs, "measured runs")->check(CLI::PositiveNumber);
  app.add_option("--max_isa", options.max_isa, "instruction set cap");
  app.add_flag("--steps,!--no-steps", options.steps, "a line per step");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = tilewire::Measure(options);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
