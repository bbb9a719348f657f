// SPDX-License-Identifier: Apache-2.0
//
// The servers that the service's bench compares, each in a process of its own:
//
//   server  ours, with its compute threads as the real one starts them
//   bare    answers ModelInfer with bytes that it has, and looks at nothing
//   lean    the leanest around ONNX Runtime (lean_service.h), where its library is at hand
//
// The last two on gRPC's callbacks, and on completion queues (queue_server.h).
#ifndef TESTS_BENCH_SERVICE_SIDES_H_
#define TESTS_BENCH_SERVICE_SIDES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/bench/served_process.h"

namespace tilewire::bench {

// The model that all sides serve, and the threads that they serve it with.
struct Served {
  std::string repository;  // our models
  int threads = 1;
  std::string library;  // libonnxruntime.so; empty: no lean server
  std::string model;    // the lean server's ONNX file
};

struct Side {
  std::string name;
  std::unique_ptr<ServedProcess> process;
};

// The names that measurements ask for; there are more.
inline constexpr char kOurs[] = "server";
inline constexpr char kBare[] = "bare, one queue, 1 thread";
inline constexpr char kLean[] = "lean, one queue, 4 threads";

// Ours first. To be called while this process has no thread but one.
//   kInternal  one did not start
absl::StatusOr<std::vector<Side>> StartSides(const Served& served);

}  // namespace tilewire::bench

#endif  // TESTS_BENCH_SERVICE_SIDES_H_
