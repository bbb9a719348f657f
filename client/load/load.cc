// SPDX-License-Identifier: Apache-2.0
#include "client/load/load.h"

#include <sys/resource.h>

#include "client/load/load_run.h"

namespace tilewire::client {
namespace {

absl::Duration CpuTime() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return absl::DurationFromTimeval(usage.ru_utime) + absl::DurationFromTimeval(usage.ru_stime);
}

}  // namespace

absl::StatusOr<LoadReport> RunLoad(const ClientFactory& connect, const LoadOptions& options,
                                   const LoadProgress& progress) {
  const int connections = options.is_open() ? options.connections : options.concurrency;
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < connections; ++i) {
    absl::StatusOr<std::unique_ptr<Client>> client = connect();
    if (!client.ok()) return client.status();
    clients.push_back(*std::move(client));
  }
  RequestMix mix(options);
  auto check = AnswerCheck::Create(mix.Fingerprints(), options.golden, options.tolerance);
  if (!check.ok()) return check.status();
  LoadRun run(options, clients, &mix, check->get());
  const absl::Duration before = CpuTime();
  LoadReport report = run.Run(progress);
  // The warm-up's share is taken away: `elapsed` does not count it.
  const absl::Duration whole = report.elapsed + options.warm_up;
  report.cpu = (CpuTime() - before) * absl::FDivDuration(report.elapsed, whole);
  if (options.recorded != nullptr) *options.recorded = (*check)->Expectations();
  return report;
}

}  // namespace tilewire::client
