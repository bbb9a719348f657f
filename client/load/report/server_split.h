// SPDX-License-Identifier: Apache-2.0
//
// Where a server says that the time of a request went: parameters of the answer, in microseconds,
// which it gives to requests with the parameter `timing`; `reorder_us` is a part of `compute_us`.
#ifndef CLIENT_LOAD_REPORT_SERVER_SPLIT_H_
#define CLIENT_LOAD_REPORT_SERVER_SPLIT_H_

#include <grpcpp/support/byte_buffer.h>

#include <optional>

#include "absl/time/time.h"

namespace tilewire::client {

inline constexpr char kTimingParameter[] = "timing";  // of a request; true

// A server need not tell them apart: what it does not give is within what it gives, or nothing.
// `compute` is without `reorder`.
struct ServerSplit {
  absl::Duration compute;
  std::optional<absl::Duration> queue, reorder, encode;
  absl::Duration total() const {
    absl::Duration sum = compute;
    for (const auto& part : {queue, reorder, encode}) sum += part.value_or(absl::ZeroDuration());
    return sum;
  }
};

// Reads a serialized ModelInferResponse; nothing if it does not say how long it computed.
std::optional<ServerSplit> SplitOf(const grpc::ByteBuffer& answer);

}  // namespace tilewire::client

#endif  // CLIENT_LOAD_REPORT_SERVER_SPLIT_H_
