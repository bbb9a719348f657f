// SPDX-License-Identifier: Apache-2.0
//
// `tilewire load`: a closed or an open loop of requests, every answer checked.
#include "client/load/load.h"

#include <csignal>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/load/random_input.h"
#include "client/progress.h"
#include "client/tool/command.h"

namespace tilewire::client {
namespace {

constexpr char kLoadExamples[] =
    R"(Prints latency and throughput. Without --rate a closed loop: each caller sends its
next request when the last is answered. With --rate an open loop: requests are
sent at that rate whatever the server does, and latency counts from the time at
which each was to be sent, which is what independent users see. Equal inputs
must give equal bytes; if one does not, or on an error, the exit status is 1.
Ctrl-C ends the load and prints what was measured.

  tilewire load --model=digits --concurrency=2 --duration=10
  tilewire load --model=resnet50 --requests=100 --batch=8 --layout=nhwc
  tilewire load --model=resnet50 --rate=40 --warm_up=2 --duration=60)";

struct LoadFlags {
  std::string model, layout = "nchw", arrivals = "poisson";
  int concurrency = 1, connections = 4, max_waiting = 10'000;
  double rate = 0, warm_up_s = 0, duration_s = 10, timeout_s = 60;
  int64_t requests = 0, batch = 1, free_size = 224, distinct = 4;
  uint64_t seed = 1;
};

std::atomic<bool>& Interrupted() {
  static std::atomic<bool> interrupted = false;
  return interrupted;
}

absl::StatusOr<std::vector<std::vector<Tensor>>> RandomInputs(const LoadFlags& flags,
                                                              const ModelMetadata& metadata) {
  std::vector<std::vector<Tensor>> all;
  for (int64_t seed = 0; seed < flags.distinct; ++seed) {
    std::vector<Tensor> inputs;
    for (const TensorMetadata& input : metadata.inputs) {
      const bool has_layout = input.shape.size() >= 3 && input.shape.size() <= 5;
      auto tensor = RandomInput(input, flags.batch, flags.free_size,
                                has_layout ? ParseLayout(flags.layout) : Layout::kNchw, seed);
      if (!tensor.ok()) return tensor.status();
      inputs.push_back(*std::move(tensor));
    }
    all.push_back(std::move(inputs));
  }
  return all;
}

// The first dimension of every input is the batch; one that the model fixes cannot be chosen.
absl::Status CheckBatch(const LoadFlags& flags, const ModelMetadata& metadata) {
  for (const TensorMetadata& input : metadata.inputs) {
    if (flags.batch == 1 || input.shape.empty() || input.shape[0] < 0) continue;
    if (input.shape[0] == flags.batch) continue;
    return absl::InvalidArgumentError(absl::StrFormat(
        "--batch=%d: model '%s' takes a batch of %d only (input '%s': %s)", flags.batch,
        flags.model, input.shape[0], input.name, ShapeText(input.shape)));
  }
  return absl::OkStatus();
}

absl::StatusOr<LoadOptions> MakeOptions(const LoadFlags& flags, Client* client) {
  absl::StatusOr<ModelMetadata> metadata = client->Metadata(flags.model);
  if (!metadata.ok()) return metadata.status();
  if (absl::Status status = CheckBatch(flags, *metadata); !status.ok()) return status;
  auto inputs = RandomInputs(flags, *metadata);
  if (!inputs.ok()) return inputs.status();
  LoadOptions options;
  options.model = flags.model;
  options.inputs = *std::move(inputs);
  options.infer.deadline = absl::Seconds(flags.timeout_s);
  options.infer.outputs = AllOutputs(*metadata, ParseLayout(flags.layout));
  options.concurrency = flags.concurrency;
  options.rate = flags.rate;
  options.arrivals = flags.arrivals == "constant" ? ArrivalKind::kConstant : ArrivalKind::kPoisson;
  options.seed = flags.seed;
  options.connections = flags.connections;
  options.max_waiting = flags.max_waiting;
  options.warm_up = absl::Seconds(flags.warm_up_s);
  options.duration = absl::Seconds(flags.duration_s);
  options.requests = flags.requests;
  options.stop = &Interrupted();
  return options;
}

void ShowProgress(const LoadFlags& flags, const LoadReport& report, Progress* progress) {
  const int64_t errors = report.error_count() + report.mismatches + report.unsent;
  const double fraction =
      flags.requests > 0
          ? static_cast<double>(report.answered + report.error_count()) / flags.requests
          : absl::ToDoubleSeconds(report.elapsed) / flags.duration_s;
  progress->Show(fraction, absl::StrFormat("%d answers, %.1f/s, %d errors", report.answered,
                                           report.rate(), errors));
}

std::string Loop(const LoadFlags& flags) {
  if (flags.rate == 0) return absl::StrFormat("concurrency %d", flags.concurrency);
  return absl::StrFormat("open loop of %.6g/s (%s)", flags.rate, flags.arrivals);
}

void PrintErrors(const LoadReport& report) {
  absl::PrintF("errors      %d, answers that differ from the first for the same input: %d\n",
               report.error_count(), report.mismatches);
  for (const auto& [code, errors] : report.errors)
    absl::PrintF("            %d %s\n", errors, absl::StatusCodeToString(code));
  if (report.unsent > 0) {
    absl::PrintF("unsent      %d: too many answers were outstanding (--max_waiting)\n",
                 report.unsent);
  }
}

void PrintReport(const LoadFlags& flags, const LoadReport& report) {
  const double elapsed = absl::ToDoubleSeconds(report.elapsed);
  absl::PrintF("%s: %d answers in %.1f s, %s, batch %d, %s\n", flags.model, report.answered,
               elapsed, Loop(flags), flags.batch, flags.layout);
  if (report.answered > 0) {
    absl::PrintF("latency     %s\n", report.latencies.ToString());
    if (flags.rate > 0) {
      absl::PrintF("service     %s (from when a request was sent)\n", report.service.ToString());
      absl::PrintF("lateness    %s (of sending)\n", report.lateness.ToString());
    }
    absl::PrintF("throughput  %.1f requests/s, %.1f rows/s\n", report.rate(),
                 report.rate() * flags.batch);
  }
  PrintErrors(report);
  if (elapsed > 0) {
    absl::PrintF("this client used %.0f %% of a core\n",
                 100 * absl::ToDoubleSeconds(report.cpu) / elapsed);
  }
}

int RunLoadCommand(const Server& server, const LoadFlags& flags) {
  auto client = server.Connect();
  if (!client.ok()) return Report(client.status());
  auto options = MakeOptions(flags, client->get());
  if (!options.ok()) return Report(options.status());
  std::signal(SIGINT, [](int) { Interrupted() = true; });
  absl::StatusOr<LoadReport> report;
  {
    Progress progress;
    report = RunLoad([&] { return server.Connect(); }, *options,
                     [&](const LoadReport& so_far) { ShowProgress(flags, so_far, &progress); });
    if (report.ok()) ShowProgress(flags, *report, &progress);
  }
  if (!report.ok()) return Report(report.status());
  PrintReport(flags, *report);
  if (report->ok()) return 0;
  absl::FPrintF(stderr, "tilewire: %s\n",
                report->first_error.empty() ? "nothing was answered" : report->first_error);
  return 1;
}

}  // namespace

void AddLoadCommand(CLI::App* app, const Server& server, int* exit_code) {
  CLI::App* command =
      app->add_subcommand("load", "Send requests in a loop, measure, check answers");
  command->footer(kLoadExamples);
  auto flags = std::make_shared<LoadFlags>();
  command->add_option("--model", flags->model, "the model to call")->required();
  CLI::Option* concurrency = command
                                 ->add_option("--concurrency", flags->concurrency,
                                              "requests at a time, each on its own connection")
                                 ->check(CLI::Range(1, 10000))
                                 ->capture_default_str();
  command
      ->add_option("--rate", flags->rate, "requests per second of an open loop, instead of callers")
      ->check(Between(0.001, 1e6))
      ->excludes(concurrency);
  command->add_option("--arrivals", flags->arrivals, "gaps between the requests of an open loop")
      ->check(CLI::IsMember({"poisson", "constant"}))
      ->capture_default_str();
  command->add_option("--seed", flags->seed, "of the gaps")->capture_default_str();
  command->add_option("--connections", flags->connections, "that an open loop sends on")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  command
      ->add_option("--max_waiting", flags->max_waiting,
                   "answers outstanding in an open loop; requests beyond stay unsent")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command->add_option("--warm_up", flags->warm_up_s, "seconds before counting begins")
      ->check(Between(0, 1e6))
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
