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

std::vector<grpc::ByteBuffer> Serialize(const LoadOptions& options) {
  std::vector<grpc::ByteBuffer> requests;
  for (const std::vector<Tensor>& inputs : options.inputs) {
    const grpc::Slice slice(
        MakeInferRequest(options.model, inputs, options.infer).SerializeAsString());
    requests.emplace_back(&slice, 1);
  }
  return requests;
}

}  // namespace

int64_t LoadReport::error_count() const {
  int64_t count = 0;
  for (const auto& [code, errors] : errors) count += errors;
  return count;
}

double LoadReport::rate() const {
  return elapsed > absl::ZeroDuration() ? answered / absl::ToDoubleSeconds(elapsed) : 0;
}

absl::StatusOr<LoadReport> RunLoad(const ClientFactory& connect, const LoadOptions& options,
                                   const LoadProgress& progress) {
  const int connections = options.rate > 0 ? options.connections : options.concurrency;
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < connections; ++i) {
    absl::StatusOr<std::unique_ptr<Client>> client = connect();
    if (!client.ok()) return client.status();
    clients.push_back(*std::move(client));
  }
  LoadRun run(options, clients, Serialize(options));
  const absl::Duration before = CpuTime();
  LoadReport report = run.Run(progress);
  report.cpu = CpuTime() - before;
  return report;
}

}  // namespace tilewire::client
