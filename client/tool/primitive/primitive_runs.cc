// SPDX-License-Identifier: Apache-2.0
#include "client/tool/primitive/primitive_runs.h"

#include <optional>

#include "absl/time/clock.h"
#include "client/primitive_request.h"

namespace tilewire::client {
namespace {

// The forward primitive whose workspace a primitive reads, backward; nothing where it reads none.
std::optional<v1::PrimitiveDesc> ForwardOf(const v1::PrimitiveDesc& desc) {
  if (desc.pooling().prop_kind() < v1::PROP_KIND_BACKWARD ||
      desc.pooling().algorithm() != v1::POOLING_MAX)
    return std::nullopt;
  v1::PrimitiveDesc forward = desc;
  forward.mutable_pooling()->set_prop_kind(v1::PROP_KIND_FORWARD_TRAINING);
  return forward;
}

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
  if (const std::optional<v1::PrimitiveDesc> forward = ForwardOf(desc)) {
    v1::CreateRequest first;
    *first.mutable_primitive() = *forward;
    auto created = client->Create(first);
    if (!created.ok()) return created.status();
    create.set_forward_id(created->id());
  }
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
