// SPDX-License-Identifier: Apache-2.0
#include "service/probe.h"

#include <grpcpp/grpcpp.h>

#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "protos/health.grpc.pb.h"
#include "service/address.h"

namespace tilewire::service {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

constexpr absl::Duration kPatience = absl::Seconds(3);

// The value of `flag` among the arguments, as "--port=1" or "--port 1".
std::optional<std::string> ValueOf(absl::string_view flag,
                                   const std::vector<std::string>& arguments) {
  for (size_t i = 1; i < arguments.size(); ++i) {
    absl::string_view argument = arguments[i];
    if (!absl::ConsumePrefix(&argument, flag)) continue;
    if (absl::ConsumePrefix(&argument, "=")) return std::string(argument);
    if (argument.empty() && i + 1 < arguments.size()) return arguments[i + 1];
  }
  return std::nullopt;
}

void Apply(const std::vector<std::string>& arguments, ProbeTarget* target) {
  if (auto host = ValueOf("--host", arguments)) target->host = *std::move(host);
  int port = 0;
  if (auto text = ValueOf("--port", arguments); text && absl::SimpleAtoi(*text, &port))
    target->port = port;
}

}  // namespace

ProbeTarget FindProbeTarget(const std::vector<std::string>& own,
                            const std::vector<std::string>& process_1, ProbeTarget otherwise) {
  ProbeTarget target = std::move(otherwise);
  if (!process_1.empty() && absl::EndsWith(process_1[0], "tilewire-server"))
    Apply(process_1, &target);
  Apply(own, &target);
  if (target.host == "0.0.0.0") target.host = "127.0.0.1";
  if (target.host == "::" || target.host == "[::]") target.host = "::1";
  return target;
}

std::vector<std::string> ReadCommandLine(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (text.empty()) return {};
  return absl::StrSplit(absl::StripSuffix(text, absl::string_view("\0", 1)), '\0');
}

absl::Status Probe(const ProbeTarget& target) {
  const std::string address = AddressText(target.host, target.port);
  if (target.port == 0) {
    return absl::UnavailableError(
        absl::StrCat(address, ": the server picks its port itself; say --port to --probe"));
  }
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);  // the server is on this machine
  auto health = grpc::health::v1::Health::NewStub(
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
  HealthCheckResponse response;
  const grpc::Status status = health->Check(&context, HealthCheckRequest(), &response);
  if (!status.ok()) {
    return absl::UnavailableError(
        absl::StrCat("no server answers at ", address, ": ", status.error_message()));
  }
  if (response.status() != HealthCheckResponse::SERVING)
    return absl::UnavailableError(absl::StrCat(address, " is not serving"));
  return absl::OkStatus();
}

}  // namespace tilewire::service
