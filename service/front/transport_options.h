// SPDX-License-Identifier: Apache-2.0
//
// Bounds on the cost of a connection, as the transport's options, in one table. Pure functions.
#ifndef SERVICE_FRONT_TRANSPORT_OPTIONS_H_
#define SERVICE_FRONT_TRANSPORT_OPTIONS_H_

#include <cstdint>

#include "absl/time/time.h"
#include "grpcpp/server_builder.h"

namespace tilewire::service {

struct TransportOptions {
  int64_t max_message_bytes = int64_t{64} << 20;  // both ways
  // Bytes that the transport may hold for all connections together.
  int64_t transport_bytes = int64_t{512} << 20;
  int max_connections_per_peer = 1000;                   // 0: no bound
  int max_streams = 128;                                 // calls at once per connection
  int max_metadata_bytes = 8 << 10;                      // headers of a call
  absl::Duration keepalive = absl::Seconds(30);          // silence after which a peer is pinged
  absl::Duration keepalive_timeout = absl::Seconds(20);  // and how long it may take to answer
  absl::Duration max_idle = absl::Minutes(30);           // without a call
  absl::Duration max_age = absl::Hours(12);              // then the client is told to reconnect
  absl::Duration max_age_grace = absl::Minutes(1);
};

// kResourceExhausted and kUnimplemented answer what exceeds the bounds, or the connection ends.
void ApplyTransportOptions(const TransportOptions& options, grpc::ServerBuilder* builder);

}  // namespace tilewire::service

#endif  // SERVICE_FRONT_TRANSPORT_OPTIONS_H_
