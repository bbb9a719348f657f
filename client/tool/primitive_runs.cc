// SPDX-License-Identifier: Apache-2.0
#include "client/tool/primitive_runs.h"

#include "absl/time/clock.h"
#include "client/primitive_request.h"

namespace tilewire::client {
namespace {

double PerKernel(const PrimitiveRuns& runs, double amount) {
  const double nanoseconds = absl::ToDoubleNanoseconds(runs.kernel.Percentile(50));
  return nanoseconds > 0 ? amount / nanoseconds : 0;
}

}  // namespace

double PrimitiveRuns::gigabytes_per_s() const {
  double bytes = 0;
  for (const v1::ArgumentDesc& argument : created.arguments())
    bytes += static_cast<double>(argument.size_bytes());
  return PerKernel(*this, bytes);
}

double PrimitiveRuns::gflops() const {
  return PerKernel(*this, static_cast<double>(created.operations()));
}

absl::StatusOr<PrimitiveRuns> CreateOn(Client* client, const v1::PrimitiveDesc& desc) {
  v1::CreateRequest create;
  *create.mutable_primitive() = desc;
  auto created = client->Create(create);
  if (!created.ok()) return created.status();
  PrimitiveRuns runs;
  runs.created = *std::move(created);
  return runs;
}

absl::Status TimeRuns(Client* client, const v1::PrimitiveDesc& desc, int repeat,
                      PrimitiveRuns* runs) {
  auto request = MakeExecuteRequest(desc, runs->created);
  if (!request.ok()) return request.status();
  for (int i = 0; i < repeat; ++i) {
    const absl::Time sent = absl::Now();
    auto response = client->Execute(*request);
    if (!response.ok()) return response.status();
    runs->whole.Add(absl::Now() - sent);
    runs->reorder_in.Add(absl::Nanoseconds(response->reorder_in_ns()));
    runs->kernel.Add(absl::Nanoseconds(response->kernel_ns()));
    runs->reorder_out.Add(absl::Nanoseconds(response->reorder_out_ns()));
  }
  request->set_measure_peak(true);  // in a run of its own, which would make a round trip long
  auto response = client->Execute(*request);
  if (!response.ok()) return response.status();
  runs->peak_gflops = response->peak_gflops();
  runs->threads = response->threads();
  return absl::OkStatus();
}

}  // namespace tilewire::client
