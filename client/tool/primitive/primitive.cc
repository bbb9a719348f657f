// SPDX-License-Identifier: Apache-2.0
//
// `tilewire primitive`: compile one primitive on the server, run it, print what was chosen and how
// long it took.
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "client/amount_text.h"
#include "client/tool/command.h"
#include "client/tool/open_layouts.h"
#include "client/tool/primitive/primitive_help.h"
#include "client/tool/primitive/primitive_runs.h"

namespace tilewire::client {
namespace {

constexpr char kBenchExamples[] =
    R"(A line of the file is what stands after `tilewire primitive`; # begins a comment:

  convolution --src=1x64x56x56 --weights=64x64x3x3 --padding=1 --relu  # layer1
  convolution --src=1x256x14x14 --weights=256x256x3x3 --padding=1
  pooling --src=1x64x112x112 --kernel=3 --strides=2 --padding=1

The table has the median of the kernel's time, without reorders of inputs and
outputs, and what it means: GFLOP/s of products of matrices, their share of what
the threads can compute in f32 registers (measured beside them), and GB/s of all
tensors. Integer kernels may exceed the peak.)";

// How a server's reason begins for an implementation of another propagation.
constexpr absl::string_view kOtherPropagation = "does not run ";

// Many implementations may be of another propagation, which says nothing of this descriptor.
void PrintRefusals(const v1::CreateResponse& created) {
  std::vector<std::pair<std::string, int>> others;  // a reason, and of how many it is
  for (const v1::Refusal& refusal : created.refusals()) {
    if (!absl::StartsWith(refusal.reason(), kOtherPropagation)) {
      absl::PrintF("not taken       %s: %s\n", refusal.implementation(), refusal.reason());
      continue;
    }
    const auto known = absl::c_find_if(
        others, [&refusal](const auto& one) { return one.first == refusal.reason(); });
    if (known != others.end()) {
      ++known->second;
    } else {
      others.emplace_back(refusal.reason(), 1);
    }
  }
  for (const auto& [reason, count] : others)
    absl::PrintF("not taken       %s: %s\n", CountText(count, "other"), reason);
}

void PrintCreated(const v1::CreateResponse& created) {
  absl::PrintF("implementation  %s\n", created.implementation());
  if (created.cycles() > 0)
    absl::PrintF("estimated       %s of a core for one image\n", CyclesText(created.cycles()));
  for (const v1::ArgumentDesc& argument : created.arguments()) {
    absl::PrintF("%-14s  %s, %s\n", argument.name(),
                 argument.text().empty() ? ToText(argument.desc()) : argument.text(),
                 BytesText(argument.size_bytes()));
  }
  PrintRefusals(created);
  for (const std::string& dump : created.dumps()) absl::PrintF("code dumped     %s\n", dump);
  absl::PrintF("scratchpad      %s\n", BytesText(created.scratchpad_bytes()));
  if (created.cache_hit()) {
    absl::PrintF("compiled        before (cache hit)\n");
  } else {
    absl::PrintF("compiled        now, in %s (cache miss)\n",
                 LatencyText(absl::Nanoseconds(created.compile_time_ns())));
  }
}

void PrintRuns(const PrimitiveRuns& runs, int repeat) {
  absl::PrintF("%-14s  median       fastest\n", absl::StrCat("of ", CountText(repeat, "run")));
  const auto row = [](const char* name, const Latencies& times) {
    absl::PrintF("  %-12s  %-11s  %s\n", name, LatencyText(times.Percentile(50)),
                 LatencyText(times.Percentile(0)));
  };
  row("reorder in", runs.reorder_in);
  row("kernel", runs.kernel);
  row("reorder out", runs.reorder_out);
  row("round trip", runs.whole);
  absl::PrintF("kernel's speed  %.1f GB/s", runs.gigabytes_per_s());
  if (runs.gflops() > 0) absl::PrintF(", %.1f GFLOP/s", runs.gflops());
  if (runs.share_of_peak() > 0) absl::PrintF(", %.1f %% of the peak", 100 * runs.share_of_peak());
  absl::PrintF("\npeak            %.1f GFLOP/s in f32, just now, with %s\n", runs.peak_gflops,
               CountText(runs.threads, "thread"));
}

int RunPrimitive(const Server& server, const PrimitiveOptions& options, int repeat) {
  absl::StatusOr<v1::PrimitiveDesc> desc = options.Desc();
  if (!desc.ok()) {
    absl::FPrintF(stderr, "tilewire: %s\n`tilewire primitive KIND --help` shows an example.\n",
                  desc.status().message());
    return 2;
  }
  auto client = server.Connect();
  if (!client.ok()) return Report(client.status());
  auto runs = CreateOn(client->get(), *desc);
  if (!runs.ok()) {
    const int exit_code = Report(runs.status(), kWhenPrimitiveInvalid);
    if (absl::StrContains(runs.status().message(),
                          absl::StrCat(kOtherPropagation, options.text.prop)))
      absl::FPrintF(stderr, "%s runs --prop=%s\n", options.text.kind,
                    absl::StrReplaceAll(PropagationsOf(options.text.kind), {{" ", ", "}}));
    return exit_code;
  }
  PrintCreated(runs->created);
  if (auto timed = TimeRuns(client->get(), *desc, repeat, &*runs); !timed.ok())
    return Report(timed, kWhenPrimitiveInvalid);
  PrintRuns(*runs, repeat);
  absl::PrintF("%s", CostOfNamedLayouts(client->get(), *desc, *runs));
  return 0;
}

CLI::Option* AddRepeat(CLI::App* command, int* repeat) {
  return command->add_option("--repeat", *repeat, "runs")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
}

CLI::App* AddBenchCommand(CLI::App* app, const Server& server, int* exit_code) {
  CLI::App* command = app->add_subcommand("bench", "Time the primitives that a file describes");
  command->footer(kBenchExamples);
  auto file = std::make_shared<std::string>();
  auto repeat = std::make_shared<int>(10);
  command->add_option("file", *file, "a primitive per line")->required()->check(CLI::ExistingFile);
  AddRepeat(command, repeat.get());
  command->callback([=, &server] {
    auto client = server.Connect();
    *exit_code =
        client.ok() ? BenchPrimitives(client->get(), *file, *repeat) : Report(client.status());
  });
  return command;
}

}  // namespace

void AddPrimitiveCommand(CLI::App* app, const Server& server, int* exit_code) {
  CLI::App* command = app->add_subcommand("primitive", "Compile and time primitives on the server");
  command->footer(absl::StrCat(
      "`tilewire primitive KIND --help` shows the options of one kind.\n\n", kTensorText, "\n\n",
      PrimitiveExamples(), "\n  tilewire primitive bench layers.txt"));
  auto options = std::make_shared<PrimitiveOptions>();
  auto repeat = std::make_shared<int>(10);
  options->AddTo(command);
  AddRepeat(command, repeat.get());
  CLI::App* bench = AddBenchCommand(command, server, exit_code);
  command->formatter(std::make_shared<PrimitiveHelp>());
  bench->preparse_callback([command](size_t) { command->get_option("--src")->required(false); });
  command->callback([=, &server] {
    if (command->got_subcommand(bench)) return;
    *exit_code = RunPrimitive(server, *options, *repeat);
  });
}

}  // namespace tilewire::client
