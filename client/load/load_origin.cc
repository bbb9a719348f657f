// SPDX-License-Identifier: Apache-2.0
#include "client/load/load_origin.h"

#include <sched.h>
#include <unistd.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/amount_text.h"
#include "protos/open_inference.grpc.pb.h"

namespace tilewire::client {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(2);

}  // namespace

std::string NewLoadName() {
  std::random_device random;
  return absl::StrFormat("%08x%08x", random(), random());
}

std::string ServerName(const Client& client) {
  const auto stub = inference::GRPCInferenceService::NewStub(client.channel());
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
  inference::ServerMetadataResponse response;
  const grpc::Status status = stub->ServerMetadata(&context, {}, &response);
  if (!status.ok() || response.name().empty()) return "";
  return absl::StrCat(response.name(), response.version().empty() ? "" : " ", response.version());
}

std::string HostText() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  cpu_set_t cores;
  CPU_ZERO(&cores);
  const bool is_known = sched_getaffinity(0, sizeof(cores), &cores) == 0;
  return is_known ? absl::StrCat(name, ", ", CountText(CPU_COUNT(&cores), "core")) : name;
}

std::string OriginText(const LoadOrigin& origin) {
  std::string text;
  if (!origin.server.empty()) absl::StrAppend(&text, "server      ", origin.server, "\n");
  if (!origin.client.empty()) {
    absl::StrAppend(&text, "client      ", origin.client, " on ", origin.host, ", seed ",
                    origin.seed, "\n");
  }
  return text;
}

}  // namespace tilewire::client
