// SPDX-License-Identifier: Apache-2.0
//
// The requests that a load sends, serialized, and which of them is next: the part is drawn by the
// shares, with a seed; the inputs of a part follow each other in turn. Thread-compatible.
#ifndef CLIENT_LOAD_REQUEST_MIX_H_
#define CLIENT_LOAD_REQUEST_MIX_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <random>
#include <vector>

#include "client/load/load_options.h"

namespace tilewire::client {

class RequestMix {
 public:
  struct Request {
    size_t part = 0;
    uint64_t fingerprint = 0;
    grpc::ByteBuffer bytes;  // a serialized ModelInferRequest
    absl::Duration deadline;
  };

  explicit RequestMix(const LoadOptions& options);

  // The number of the next request.
  size_t Next();
  const std::vector<Request>& requests() const { return requests_; }
  std::vector<uint64_t> Fingerprints() const;

 private:
  struct Turn {
    size_t first = 0, count = 0, next = 0;  // of `requests_`
  };

  std::vector<Request> requests_;
  std::vector<Turn> turns_;  // per part
  std::mt19937_64 random_;
  std::discrete_distribution<size_t> draw_;
};

}  // namespace tilewire::client

#endif  // CLIENT_LOAD_REQUEST_MIX_H_
