// SPDX-License-Identifier: Apache-2.0
//
// A closed loop of requests: `concurrency` callers, each with a connection of its own, send the
// next request when the last is answered. Every answer's bytes are compared with the first answer
// to the same input: a server that computes the same bits every time must never differ, whatever
// runs beside it.
#ifndef CLIENT_LOAD_H_
#define CLIENT_LOAD_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/client.h"
#include "client/latencies.h"

namespace tilewire::client {

struct LoadOptions {
  std::string model;
  std::vector<std::vector<Tensor>> inputs;  // requests to send in turn
  InferOptions infer;
  int concurrency = 1;
  absl::Duration duration = absl::Seconds(10);  // used when `requests` is 0
  int64_t requests = 0;
};

struct LoadReport {
  Latencies latencies;  // of the requests that were answered
  absl::Duration elapsed;
  int64_t answered = 0, errors = 0, mismatches = 0;
  std::string first_error;  // of the server, or what differed
  bool ok() const { return errors == 0 && mismatches == 0 && answered > 0; }
};

using ClientFactory = std::function<absl::StatusOr<std::unique_ptr<Client>>()>;
// Called about ten times a second from the thread that runs the load.
using LoadProgress = std::function<void(const LoadReport& so_far)>;

// A status that is not OK: a caller could not connect. What requests met is in the report.
absl::StatusOr<LoadReport> RunLoad(const ClientFactory& connect, const LoadOptions& options,
                                   const LoadProgress& progress);

// Deterministic input for a model: values in [0, 1) for floating point, small numbers elsewhere; -1
// becomes `batch` in the first dimension and `free_size` elsewhere. `seed` makes another one.
//   kUnimplemented    datatype BYTES
//   kInvalidArgument  more bytes than a message can hold
absl::StatusOr<Tensor> RandomInput(const TensorMetadata& metadata, int64_t batch, int64_t free_size,
                                   Layout layout, uint64_t seed);

}  // namespace tilewire::client

#endif  // CLIENT_LOAD_H_
