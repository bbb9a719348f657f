// SPDX-License-Identifier: Apache-2.0
#include "service/front/transport_options.h"

#include <limits>

#include "grpc/grpc.h"
#include "grpcpp/resource_quota.h"

namespace tilewire::service {
namespace {

int Milliseconds(absl::Duration time) {
  const int64_t milliseconds = absl::ToInt64Milliseconds(time);
  return static_cast<int>(std::min<int64_t>(milliseconds, std::numeric_limits<int>::max()));
}

}  // namespace

void ApplyTransportOptions(const TransportOptions& options, grpc::ServerBuilder* builder) {
  grpc::ResourceQuota quota("transport");
  quota.Resize(options.transport_bytes);
  builder->SetResourceQuota(quota);
  builder->SetMaxReceiveMessageSize(static_cast<int>(options.max_message_bytes));
  builder->SetMaxSendMessageSize(static_cast<int>(options.max_message_bytes));
  const struct {
    const char* name;
    int value;
  } arguments[] = {
      // Compressed messages arrive as they are: gRPC would inflate 1.5 MB to 2 GB before it judges
      // the size.
      {GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0},
      {GRPC_ARG_MAX_CONCURRENT_STREAMS, options.max_streams},
      {GRPC_ARG_MAX_METADATA_SIZE, options.max_metadata_bytes},
      {GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(options.keepalive)},
      {GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(options.keepalive_timeout)},
      {GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1},
      {GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0},  // a silent peer is pinged again and again
      {GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000},
      {GRPC_ARG_MAX_CONNECTION_IDLE_MS, Milliseconds(options.max_idle)},
      {GRPC_ARG_MAX_CONNECTION_AGE_MS, Milliseconds(options.max_age)},
      {GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, Milliseconds(options.max_age_grace)},
  };
  for (const auto& argument : arguments) {
    builder->AddChannelArgument(argument.name, argument.value);
  }
}

}  // namespace tilewire::service
