// SPDX-License-Identifier: Apache-2.0
#include "client/connection.h"

#include <arpa/inet.h>
#include <grpcpp/create_channel.h>
#include <netdb.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tilewire::client {
namespace {

constexpr int kMostAttempts = 5;  // gRPC makes no more
// An attempt is repeated from what is kept of the request; gRPC keeps 256 KiB of it unless told
// otherwise, less than one image.
constexpr int kKeptBytes = 1 << 30;

std::shared_ptr<grpc::ChannelCredentials> CredentialsOf(const ConnectOptions& options) {
  if (!options.tls) return grpc::InsecureChannelCredentials();
  return grpc::SslCredentials({.pem_root_certs = options.tls->roots,
                               .pem_private_key = options.tls->key,
                               .pem_cert_chain = options.tls->certificate});
}

std::string ServiceConfig(int attempts, bool watch_health) {
  std::string config = R"({"loadBalancingConfig": [{"round_robin": {}}])";
  if (watch_health) absl::StrAppend(&config, R"(, "healthCheckConfig": {"serviceName": ""})");
  if (attempts > 1) {
    absl::StrAppend(&config, R"(, "methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": )",
                    attempts, R"(, "initialBackoff": "0.05s", "maxBackoff": "2s",)",
                    R"( "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}])");
  }
  return absl::StrCat(config, "}");
}

// A server of this machine, which no proxy reaches.
bool IsLoopback(absl::string_view target) {
  return absl::StartsWith(target, "localhost:") || absl::StartsWith(target, "127.") ||
         absl::StartsWith(target, "[::1]:");
}

grpc::ChannelArguments ArgumentsOf(const std::string& target, const ConnectOptions& options) {
  grpc::ChannelArguments arguments;
  if (IsLoopback(target)) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (options.tls && !options.tls->server_name.empty())
    arguments.SetSslTargetNameOverride(options.tls->server_name);
  const int attempts = std::clamp(options.attempts, 1, kMostAttempts);
  if (options.bare) {
    arguments.SetInt(GRPC_ARG_MINIMAL_STACK, 1);
    arguments.SetInt(GRPC_ARG_ENABLE_DEADLINE_CHECKS, 1);  // the minimum has none
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
    arguments.SetInt(GRPC_ARG_ENABLE_CHANNELZ, 0);
  } else {
    arguments.SetServiceConfigJSON(ServiceConfig(attempts, options.watch_health));
    arguments.SetInt(GRPC_ARG_PER_RPC_RETRY_BUFFER_SIZE, kKeptBytes);
  }
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return arguments;
}

// Appends what "HOST:PORT" stands for, as IPv6; an IPv4 address has one that stands for it, because
// a target has one kind of address.
absl::Status Resolve(absl::string_view address, std::vector<std::string>* found) {
  const size_t colon = address.rfind(':');
  const bool split = colon != absl::string_view::npos && colon > 0 && colon + 1 < address.size();
  if (!split) return absl::InvalidArgumentError(absl::StrCat("'", address, "' is not HOST:PORT"));
  const std::string host(absl::StripSuffix(absl::StripPrefix(address.substr(0, colon), "["), "]"));
  const std::string port(address.substr(colon + 1));
  addrinfo hints = {}, *entries = nullptr;
  hints.ai_family = AF_INET6;
  hints.ai_flags = AI_V4MAPPED | AI_ALL | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &entries);
  if (error == EAI_NONAME && !std::all_of(port.begin(), port.end(), ::isdigit))
    return absl::InvalidArgumentError(absl::StrCat("'", address, "' is not HOST:PORT"));
  if (error != 0) return absl::UnavailableError(absl::StrCat(address, ": ", gai_strerror(error)));
  for (const addrinfo* entry = entries; entry != nullptr; entry = entry->ai_next) {
    char text[INET6_ADDRSTRLEN];
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(entry->ai_addr);
    inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
    found->push_back(absl::StrCat("[", text, "]:", port));
  }
  freeaddrinfo(entries);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> TargetOf(const std::string& addresses) {
  for (const absl::string_view scheme : {"http://", "https://", "grpc://"}) {
    if (!absl::StartsWith(addresses, scheme)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("'", addresses, "' is a URL, not HOST:PORT: leave '", scheme, "' out"));
  }
  if (!absl::StrContains(addresses, ',')) return addresses;
  std::vector<std::string> found;
  for (absl::string_view address : absl::StrSplit(addresses, ',')) {
    const absl::Status status = Resolve(address, &found);
    if (!status.ok()) return status;
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return absl::StrCat("ipv6:", absl::StrJoin(found, ","));
}

std::shared_ptr<grpc::Channel> ChannelTo(const std::string& target, const ConnectOptions& options) {
  return grpc::CreateCustomChannel(target, CredentialsOf(options), ArgumentsOf(target, options));
}

}  // namespace tilewire::client
