// SPDX-License-Identifier: Apache-2.0
//
// Times one ONNX model in the engine alone, without a server:
//
//   bazel run //tests/bench:model_bench -- --model=resnet50.onnx --batch=1 --threads=1
//
// Prints load time, the median run, and a line per step with its median.
#include <cstdint>
#include <cstdio>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "engine/base/precision.h"
#include "engine/base/status_macros.h"
#include "engine/engine.h"
#include "engine/explanation.h"

namespace tilewire::bench {
namespace {

struct Options {
  std::string model, max_isa = "best", precision = "exact";
  int64_t batch = 1;
  int threads = 1, runs = 15;
  bool steps = true;
};

absl::Status Measure(const Options& options) {
  EngineOptions engine_options{.threads = options.threads, .threads_per_request = options.threads};
  ABSL_ASSIGN_OR_RETURN(engine_options.max_isa, cpu::ParseIsa(options.max_isa));
  ABSL_ASSIGN_OR_RETURN(engine_options.precision, ParsePrecision(options.precision));
  ABSL_ASSIGN_OR_RETURN(const auto engine, Engine::Create(engine_options));
  const absl::Time load_start = absl::Now();
  ABSL_ASSIGN_OR_RETURN(const auto model, engine->LoadModel(options.model));
  std::printf("load    %8.1f ms\n", absl::ToDoubleMilliseconds(absl::Now() - load_start));
  ABSL_ASSIGN_OR_RETURN(const Explanation plan,
                        model->Explain({.batch = options.batch, .runs = options.runs}));
  std::printf("median  %8.4f ms\n", absl::ToDoubleMilliseconds(plan.run));
  if (!options.steps) return absl::OkStatus();
  for (const PlanStep& step : plan.steps) {
    std::string layouts;
    for (const PlanTensor& tensor : step.tensors)
      absl::StrAppend(&layouts, " ", tensor.argument, "=", tensor.layout);
    std::printf("%9.1f us  %-32s %s %s %s %s\n", absl::ToDoubleMicroseconds(step.time),
                step.implementation.c_str(), step.node.c_str(), layouts.c_str(), step.fused.c_str(),
                step.remark.c_str());
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace tilewire::bench

int main(int argc, char** argv) {
  tilewire::bench::Options options;
  CLI::App app{"Times one ONNX model in the engine alone"};
  app.add_option("--model", options.model, "ONNX file")->required();
  app.add_option("--batch", options.batch, "images a run")->check(CLI::PositiveNumber);
  app.add_option("--threads", options.threads, "compute threads")->check(CLI::PositiveNumber);
  app.add_option("--runs", options.runs, "measured runs")->check(CLI::PositiveNumber);
  app.add_option("--max_isa", options.max_isa, "instruction set cap");
  app.add_option("--precision", options.precision, "exact, fast or bf16");
  app.add_flag("--steps,!--no-steps", options.steps, "a line per step");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = tilewire::bench::Measure(options);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
