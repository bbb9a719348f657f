// SPDX-License-Identifier: Apache-2.0
//
// `tilewire load`: closed and open loops of requests, and the search for the highest rate.
#include "client/load/load.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "client/amount_text.h"
#include "client/ending_signal.h"
#include "client/load/objective.h"
#include "client/load/report/report_text.h"
#include "client/load/search/find_rate.h"
#include "client/progress.h"
#include "client/tool/command.h"
#include "client/tool/load_flags.h"
#include "client/tool/version.h"

namespace tilewire::client {
namespace {

constexpr char kLoadExamples[] =
    R"(Measures latency and throughput, and checks every answer: equal requests must
give equal bytes, or what --golden recorded. A closed loop (--concurrency): each
caller sends its next request when the last is answered. An open loop (--rate,
--profile): requests are sent at that rate whatever the server does, and latency
counts from the time at which each was to be sent, which is what independent
users see. With --think callers pause before their next request, as people do.
`tilewire report` compares and merges files of --json.

Exit status: 1 if a request failed or an answer differs; with --require, if a
condition is not met or an answer differs; with --find_rate, if no rate holds.
Ctrl-C (or SIGTERM) ends the load: what was measured so far is printed, files are
written, and the status is 130 (143 after SIGTERM, 129 after SIGHUP), whatever was
measured. A second one ends the tool at once.

  tilewire load --model=digits --concurrency=1,2,4,8 --duration=10
  tilewire load --model=digits --concurrency=50 --think=20ms --duration=60
  tilewire load --model=resnet50 --batch=8 --layout=nhwc --requests=100
  tilewire load --model=resnet50 --rate=40 --duration=60 --html=page.html
  tilewire load --model=resnet50 --find_rate --p99=20ms --search_time=300
  tilewire load --mix=digits:9,resnet50@8:1 --profile=50:10s,50-200:60s
  tilewire load --model=digits --rate=100 --require="p99<20ms,errors=0"
  tilewire load --model=digits --record=answers.golden
  tilewire load --model=digits --golden=answers.golden --tolerance=1e-5)";

// The loops that the flags ask for, one after the other.
absl::StatusOr<std::vector<LoadOptions>> MakeLoops(const LoadFlags& flags, const LoadOptions& all) {
  std::vector<LoadOptions> loops;
  if (!flags.profile.empty()) {
    absl::StatusOr<RateProfile> profile = RateProfile::Parse(flags.profile);
    if (!profile.ok()) return profile.status();
    loops.push_back(all);
    loops.back().duration = profile->length();
    loops.back().profile = *std::move(profile);
    return loops;
  }
  for (const double rate : flags.rates) {
    loops.push_back(all);
    loops.back().profile = RateProfile(rate);
  }
  if (!loops.empty()) return loops;
  for (const int callers : flags.concurrency) {
    loops.push_back(all);
    loops.back().concurrency = callers;
  }
  return loops;
}

void ShowProgress(const LoadOptions& loop, const LoadReport& so_far, Progress* progress) {
  const double elapsed = absl::ToDoubleSeconds(so_far.elapsed);
  const double done = so_far.answered + so_far.error_count();
  const double fraction =
      loop.requests > 0 ? done / loop.requests : elapsed / absl::ToDoubleSeconds(loop.duration);
  const double rest = fraction > 0 ? elapsed / fraction - elapsed : 0;
  progress->Show(fraction,
                 absl::StrFormat("%s %.0f s left", ProgressText(so_far), std::max(0.0, rest)));
}

std::string LoopTitle(const LoadFlags& flags) {
  if (!flags.mix.empty()) return absl::StrCat("mix ", flags.mix, ", ", flags.layout);
  return absl::StrCat(flags.model, ", batch ", flags.batch, ", ", flags.layout);
}

// Each connection has one replica: the next connection has the next one.
ClientFactory ConnectInTurn(const Server& server) {
  return [replicas = std::vector<std::string>(absl::StrSplit(server.address, ',')), to = server,
          next = size_t{0}]() mutable {
    to.address = replicas[next++ % replicas.size()];
    return to.Connect(/*bare=*/true);
  };
}

absl::StatusOr<LoadRecord> RunLoops(const Server& server, const LoadFlags& flags,
                                    const LoadOptions& all) {
  const auto loops = MakeLoops(flags, all);
  if (!loops.ok()) return loops.status();
  LoadRecord record;
  for (const LoadOptions& loop : *loops) {
    if (HasEndingSignal()) break;
    absl::StatusOr<LoadReport> report;
    {
      Progress progress;
      report = RunLoad(ConnectInTurn(server), loop,
                       [&](const LoadReport& so_far) { ShowProgress(loop, so_far, &progress); });
      if (report.ok()) ShowProgress(loop, *report, &progress);
    }
    if (!report.ok()) return report.status();
    absl::PrintF("%s: %s in %.1f s, %s\n%s", LoopTitle(flags),
                 CountText(report->answered, "answer"), absl::ToDoubleSeconds(report->elapsed),
                 report->name, ReportText(*report));
    record.runs.push_back(*std::move(report));
  }
  if (record.runs.size() > 1) absl::PrintF("\n%s", ComparisonText(record.runs));
  return record;
}

absl::StatusOr<RateSearchOptions> MakeSearch(const LoadFlags& flags) {
  RateSearchOptions options;
  if (!absl::ParseDuration(flags.p99, &options.p99))
    return absl::InvalidArgumentError("--p99 is not a duration such as 20ms");
  const auto objective = Objective::Parse(flags.report.require);
  if (!objective.ok()) return objective.status();
  options.objective = *objective;
  options.first_rate = flags.first_rate;
  options.precision = flags.precision;
  options.requests = flags.requests;
  if (flags.duration_s > 0) options.run = absl::Seconds(flags.duration_s);
  options.time = absl::Seconds(flags.search_time_s);
  return options;
}

// The mistakes in a search that can be told before anything is sent.
absl::Status CheckSearch(const LoadFlags& flags) {
  if (!flags.find_rate) return absl::OkStatus();
  absl::StatusOr<RateSearchOptions> options = MakeSearch(flags);
  if (!options.ok()) return options.status();
  options->warm_up = absl::Seconds(flags.warm_up_s);
  return CheckSearch(*options);
}

std::string ProbeText(const RateProbe& probe) {
  const LoadReport& report = probe.report;
  std::string text = absl::StrFormat(
      "%7s/s  %-5s  p99 %7s of %s%s", RateText(probe.run.rate), probe.held ? "holds" : "fails",
      PercentileText(report.latencies, 99), CountText(report.answered, "answer"),
      report.ended_early() ? ", ended early" : "");
  if (report.failed_count() > 0)
    absl::StrAppend(&text, ", ", CountText(report.failed_count(), "error"));
  if (probe.high > 0) {
    absl::StrAppend(&text, "; the limit lies between ", RateText(probe.low), "/s and ",
                    RateText(probe.high), "/s");
  }
  return absl::StrCat(text, probe.run.is_last ? " (long run)" : "");
}

RateSearchProgress ShowSearch(Progress* progress) {
  auto time = std::make_shared<absl::Duration>();
  return {.begins =
              [=](const RateSearchOptions& options) {
                *time = SearchTime(options);
                const RateRun first = ShortRunAt(options, options.first_rate);
                progress->Note(absl::StrCat(
                    "searching from ", RateText(first.rate), "/s, with runs of ",
                    LatencyText(options.run), " and ", first.requests,
                    " requests or more: ", LatencyText(*time), " at most (--search_time)"));
              },
          .runs =
              [=](const RateRun& run, double passed, const LoadReport& so_far) {
                progress->Show(passed, absl::StrFormat("at %s/s: %s; %.0f s left at most",
                                                       RateText(run.rate), ProgressText(so_far),
                                                       std::max(0.0, absl::ToDoubleSeconds(*time) *
                                                                         (1 - passed))));
              },
          .ran = [=](const RateProbe& probe) { progress->Note(ProbeText(probe)); }};
}

absl::StatusOr<LoadRecord> RunSearch(const Server& server, const LoadFlags& flags,
                                     const LoadOptions& all) {
  const auto options = MakeSearch(flags);
  if (!options.ok()) return options.status();
  absl::StatusOr<RateSearchResult> result;
  {
    Progress progress;
    result = FindRate(ConnectInTurn(server), all, *options, ShowSearch(&progress));
  }
  if (!result.ok()) return result.status();
  LoadRecord record;
  record.bound = absl::StrCat("p99 <= ", LatencyText(options->p99));
  record.holds = result->holds;
  record.low = result->low;
  record.fails = result->fails;
  for (RateProbe& probe : result->probes) {
    absl::StrAppend(&probe.report.name, probe.held ? ", holds" : ", fails",
                    probe.run.is_last ? ", long run" : "");
    record.runs.push_back(std::move(probe.report));
  }
  absl::PrintF("%s: %s", LoopTitle(flags), SearchText(record));
  return record;
}

int ReportEndingSignal() {
  absl::FPrintF(stderr, "tilewire: the load was ended by a signal\n");
  return StatusOfEndingSignal();
}

// The exit status: what --require says of the runs, else whether all went well.
int Conclude(const LoadRecord& record, const LoadFlags& flags) {
  const absl::Status written = WriteRecord(record, flags.report);
  if (!written.ok()) return Refuse(written);
  if (flags.find_rate && !HasEndingSignal()) return record.holds > 0 ? 0 : 1;
  const auto met = JudgeRecord(record, flags.report);
  if (!met.ok()) return Refuse(met.status());
  bool ok = *met && !record.runs.empty();
  for (const LoadReport& report : record.runs) {
    ok = ok && report.mismatches == 0;
    if (!flags.report.require.empty() || report.ok()) continue;
    ok = false;
    absl::FPrintF(stderr, "tilewire: %s\n",
                  report.first_error.empty() ? "nothing was answered" : report.first_error);
  }
  if (HasEndingSignal()) return ReportEndingSignal();
  return ok ? 0 : 1;
}

absl::StatusOr<GoldenAnswers> ReadGoldenFile(const std::string& file) {
  if (file.empty()) return GoldenAnswers();
  const auto bytes = ReadFile(file);
  if (!bytes.ok()) return bytes.status();
  return ReadGolden(*bytes);
}

LoadOrigin MakeOrigin(const Server& server, const LoadFlags& flags, const Client& client) {
  const std::string name = ServerName(client);
  return {.load = NewLoadName(),
          .server = name.empty() ? server.address : absl::StrCat(server.address, " (", name, ")"),
          .client = absl::StrCat("tilewire ", kVersion),
          .host = HostText(),
          .seed = flags.seed,
          .began = absl::Now()};
}

// Loads, and writes the recorded answers.
absl::StatusOr<LoadRecord> Measure(const Server& server, const LoadFlags& flags,
                                   const GoldenAnswers& golden, LoadOptions options,
                                   const LoadOrigin& origin) {
  GoldenAnswers recorded;
  if (!flags.golden.empty()) options.golden = &golden;
  if (!flags.record.empty()) options.recorded = &recorded;
  options.stop = &HasEndingSignal();
  auto record =
      flags.find_rate ? RunSearch(server, flags, options) : RunLoops(server, flags, options);
  if (!record.ok()) return record;
  record->title = absl::StrCat(LoopTitle(flags), " at ", server.address);
  record->origins = {origin};
  if (flags.record.empty()) return record;
  const absl::Status written = WriteFile(flags.record, WriteGolden(recorded));
  if (!written.ok()) return written;
  absl::PrintF("recorded    %s in %s\n", CountText(recorded.size(), "answer"), flags.record);
  return record;
}

// No server is concerned, and no status of one is shown.
int RefuseFlags(const absl::Status& status) {
  absl::FPrintF(stderr, "tilewire: %s\n", status.message());
  return 2;
}

int RunLoadCommand(const Server& server, const LoadFlags& flags) {
  const auto golden = ReadGoldenFile(flags.golden);
  if (!golden.ok()) return Refuse(golden.status());
  auto client = server.Connect();
  if (!client.ok()) return Report(client.status());
  auto options = MakeLoadOptions(flags, client->get());
  if (!options.ok()) return Report(options.status());
  CatchEndingSignals();
  const LoadOrigin origin = MakeOrigin(server, flags, **client);
  const auto record = Measure(server, flags, *golden, *std::move(options), origin);
  return record.ok() ? Conclude(*record, flags) : Report(record.status());
}

}  // namespace

void AddLoadCommand(CLI::App* app, const Server& server, int* exit_code) {
  CLI::App* command =
      app->add_subcommand("load", "Send requests in a loop, measure, check answers");
  command->footer(kLoadExamples);
  auto flags = std::make_shared<LoadFlags>();
  AddLoadOptions(command, flags.get());
  command->callback([=, &server] {
    absl::Status right = CheckTogether(*command, *flags);
    if (right.ok()) right = CheckSearch(*flags);
    *exit_code = right.ok() ? RunLoadCommand(server, *flags) : RefuseFlags(right);
  });
}

}  // namespace tilewire::client
