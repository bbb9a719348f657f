// SPDX-License-Identifier: Apache-2.0
//
// `tilewire load`: requests as fast as the server answers them, every answer checked.
#include "client/load.h"

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/progress.h"
#include "client/tool/command.h"

namespace tilewire::client {
namespace {

constexpr char kLoadExamples[] =
    R"(Prints latency and throughput. Equal inputs must give equal bytes; if one does not, or on
an error, the exit status is 1.

  tilewire load --model=digits --concurrency=2 --duration=10
  tilewire load --model=resnet50 --requests=100 --batch=8 --layout=nhwc)";

struct LoadFlags {
  std::string model, layout = "nchw";
  int concurrency = 1;
  double duration_s = 10, timeout_s = 60;
  int64_t requests = 0, batch = 1, free_size = 224, distinct = 4;
};

absl::StatusOr<LoadOptions> MakeOptions(const LoadFlags& flags, Client* client) {
  absl::StatusOr<ModelMetadata> metadata = client->Metadata(flags.model);
  if (!metadata.ok()) return metadata.status();
  LoadOptions options;
  options.model = flags.model;
  options.concurrency = flags.concurrency;
  options.duration = absl::Seconds(flags.duration_s);
  options.requests = flags.requests;
  options.infer.deadline = absl::Seconds(flags.timeout_s);
  options.infer.outputs = AllOutputs(*metadata, ParseLayout(flags.layout));
  for (int64_t seed = 0; seed < flags.distinct; ++seed) {
    std::vector<Tensor> inputs;
    for (const TensorMetadata& input : metadata->inputs) {
      const bool has_layout = input.shape.size() >= 3 && input.shape.size() <= 5;
      auto tensor = RandomInput(input, flags.batch, flags.free_size,
                                has_layout ? ParseLayout(flags.layout) : Layout::kNchw, seed);
      if (!tensor.ok()) return tensor.status();
      inputs.push_back(*std::move(tensor));
    }
    options.inputs.push_back(std::move(inputs));
  }
  return options;
}

double Rate(const LoadReport& report) {
  return report.answered / absl::ToDoubleSeconds(report.elapsed);
}

void ShowProgress(const LoadFlags& flags, const LoadReport& report, Progress* progress) {
  const double fraction =
      flags.requests > 0 ? static_cast<double>(report.answered + report.errors) / flags.requests
                         : absl::ToDoubleSeconds(report.elapsed) / flags.duration_s;
  progress->Show(fraction, absl::StrFormat("%d answers, %.1f/s, %d errors", report.answered,
                                           Rate(report), report.errors + report.mismatches));
}

int RunLoadCommand(const Server& server, const LoadFlags& flags) {
  auto client = server.Connect();
  if (!client.ok()) return Report(client.status());
  auto options = MakeOptions(flags, client->get());
  if (!options.ok()) return Report(options.status());
  absl::StatusOr<LoadReport> report;
  {
    Progress progress;
    report = RunLoad([&] { return server.Connect(); }, *options,
                     [&](const LoadReport& so_far) { ShowProgress(flags, so_far, &progress); });
    if (report.ok()) ShowProgress(flags, *report, &progress);
  }
  if (!report.ok()) return Report(report.status());
  absl::PrintF("%s: %d answers in %.1f s, concurrency %d, batch %d, %s\n", flags.model,
               report->answered, absl::ToDoubleSeconds(report->elapsed), flags.concurrency,
               flags.batch, flags.layout);
  absl::PrintF("latency     %s\n", report->latencies.ToString());
  absl::PrintF("throughput  %.1f requests/s, %.1f rows/s\n", Rate(*report),
               Rate(*report) * flags.batch);
  absl::PrintF("errors      %d, answers that differ from the first for the same input: %d\n",
               report->errors, report->mismatches);
  if (report->ok()) return 0;
  absl::FPrintF(stderr, "tilewire: %s\n",
                report->first_error.empty() ? "nothing was answered" : report->first_error);
  return 1;
}

}  // namespace

void AddLoadCommand(CLI::App* app, const Server& server, int* exit_code) {
  CLI::App* command = app->add_subcommand("load", "Send requests in a closed loop, check answers");
  command->footer(kLoadExamples);
  auto flags = std::make_shared<LoadFlags>();
  command->add_option("--model", flags->model, "the model to call")->required();
  command
      ->add_option("--concurrency", flags->concurrency,
                   "requests at a time, each on its own connection")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  command->add_option("--duration", flags->duration_s, "seconds")
      ->check(Between(0.01, 1e6))
      ->capture_default_str();
  command->add_option("--requests", flags->requests, "stop after this many instead")
      ->check(AtLeastOne());
  command->add_option("--batch", flags->batch, "rows per request")
      ->check(AtLeastOne())
      ->capture_default_str();
  command->add_option("--layout", flags->layout, "of inputs and outputs")
      ->check(CLI::IsMember({"nchw", "nhwc"}))
      ->capture_default_str();
  command->add_option("--inputs", flags->distinct, "different random inputs, sent in turn")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  command
      ->add_option("--free_size", flags->free_size,
                   "for a dimension, other than the batch, that a request chooses")
      ->check(AtLeastOne())
      ->capture_default_str();
  command->add_option("--timeout", flags->timeout_s, "seconds for one answer")
      ->check(Between(0.001, 1e6))
      ->capture_default_str();
  command->callback([=, &server] { *exit_code = RunLoadCommand(server, *flags); });
}

}  // namespace tilewire::client
