// SPDX-License-Identifier: Apache-2.0
//
// Where calls go and what gRPC does with them: addresses, TLS, round robin, retries.
#ifndef CLIENT_CONNECTION_H_
#define CLIENT_CONNECTION_H_

#include <grpcpp/channel.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tilewire::client {

// A connection that is encrypted. Certificates and keys are PEM texts.
struct TlsOptions {
  std::string roots;             // that sign the server's certificate; empty: the system's
  std::string certificate, key;  // of this client, if the server asks for one; both or neither
  std::string server_name;       // that the server's certificate names; empty: the address's host
};

struct ConnectOptions {
  absl::Duration timeout = absl::Seconds(5);  // for the connection to stand; each metadata call too
  std::optional<TlsOptions> tls;              // nothing: in the clear
  // Leaves out what gRPC does besides calls: replicas, retries (transparent ones too), channelz,
  // statistics. A call then takes less time of this client, and a failure is seen as it is.
  bool bare = false;
  // At a call that is refused as UNAVAILABLE, at most 5: on the next replica, after the pause that
  // the server asks for (grpc-retry-pushback-ms), or else after a growing one. 1: none is repeated.
  int attempts = 4;
  // Leaves out replicas that do not serve, by grpc.health.v1; each of them answers a Watch() call.
  bool watch_health = false;
};

// The target to give to gRPC: one address as it is (HOST:PORT, of which each address of the host is
// a replica, or what names a resolver of gRPC's, such as "dns:///tilewire:8001"), or several
// HOST:PORT with commas between them, which are looked up here, once.
//   kInvalidArgument  one of several is not HOST:PORT
//   kUnavailable      one of several has no address
absl::StatusOr<std::string> TargetOf(const std::string& addresses);

// A channel to `target`, over which calls take turns among the replicas. It connects when it is
// used. Channels share no connections: a load test would measure one connection otherwise.
std::shared_ptr<grpc::Channel> ChannelTo(const std::string& target, const ConnectOptions& options);

}  // namespace tilewire::client

#endif  // CLIENT_CONNECTION_H_
