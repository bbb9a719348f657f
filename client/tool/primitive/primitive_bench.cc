// SPDX-License-Identifier: Apache-2.0
//
// `tilewire primitive bench`: a file of primitives into a table of their speeds.
#include <cstdio>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "client/amount_text.h"
#include "client/tool/command.h"
#include "client/tool/primitive/primitive_runs.h"

namespace tilewire::client {
namespace {

struct Described {
  std::string line;
  v1::PrimitiveDesc desc;
};

absl::StatusOr<v1::PrimitiveDesc> ParseLine(const std::string& line) {
  CLI::App app;
  PrimitiveOptions options;
  options.AddTo(&app);
  try {
    app.parse(line);
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(error.get_exit_code() == 0 ? "'--help' describes no primitive"
                                                                 : error.what());
  }
  return options.Desc();
}

// Every line is judged before the first one runs.
absl::StatusOr<std::vector<Described>> ReadPrimitives(const std::string& file) {
  std::ifstream in(file);
  std::vector<Described> all;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    line = std::string(absl::StripAsciiWhitespace(line.substr(0, line.find('#'))));
    if (line.empty()) continue;
    auto desc = ParseLine(line);
    if (!desc.ok()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s:%d: %s", file, number, desc.status().message()));
    }
    all.push_back({line, *std::move(desc)});
  }
  if (!in.eof()) return absl::InvalidArgumentError(file + " cannot be read");
  if (all.empty()) return absl::InvalidArgumentError(file + " describes no primitive");
  return all;
}

std::string OrDash(double value) { return value > 0 ? absl::StrFormat("%.1f", value) : "-"; }

void PrintRow(const std::string& line, const PrimitiveRuns& runs) {
  absl::PrintF("%10s %9s %7s %8s  %s\n%39s%s\n", LatencyText(runs.kernel.Percentile(50)),
               OrDash(runs.gflops()), OrDash(100 * runs.share_of_peak()),
               OrDash(runs.gigabytes_per_s()), runs.created.implementation(), "", line);
  std::fflush(stdout);
}

}  // namespace

int BenchPrimitives(Client* client, const std::string& file, int repeat) {
  const auto all = ReadPrimitives(file);
  if (!all.ok()) {
    absl::FPrintF(stderr, "tilewire: %s\n", all.status().message());
    return 2;
  }
  int exit_code = 0;
  double peak_gflops = 0;
  int threads = 0;
  absl::PrintF("    kernel   GFLOP/s  %% peak     GB/s  implementation, primitive\n");
  for (const Described& described : *all) {
    auto runs = CreateOn(client, described.desc);
    const absl::Status timed =
        runs.ok() ? TimeRuns(client, described.desc, repeat, &*runs) : runs.status();
    if (!timed.ok()) {
      absl::PrintF("%10s%29s%s\n", "failed", "", described.line);
      std::fflush(stdout);
      exit_code = Report(timed, kWhenPrimitiveInvalid);
      continue;
    }
    PrintRow(described.line, *runs);
    peak_gflops = std::max(peak_gflops, runs->peak_gflops);
    threads = runs->threads;
  }
  absl::PrintF("medians of %s; highest peak %.1f GFLOP/s in f32, with %s\n",
               CountText(repeat, "run"), peak_gflops, CountText(threads, "thread"));
  return exit_code;
}

}  // namespace tilewire::client
