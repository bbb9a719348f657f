// SPDX-License-Identifier: Apache-2.0
//
// A process that serves, beside the one that measures: our server with some models, a bare server
// that answers the same method with bytes it has, and, where ONNX Runtime is at hand, the leanest
// server around it. All use gRPC's callbacks, and their allocations are counted.
#ifndef TESTS_BENCH_SERVED_PROCESS_H_
#define TESTS_BENCH_SERVED_PROCESS_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "tests/bench/counted_malloc.h"

namespace tilewire::bench {

// What is served.
struct Served {
  std::string repository;  // our models
  int threads = 1;
  std::string library;  // libonnxruntime.so; empty: no lean server
  std::string model;    // the lean server's ONNX file
};

class ServedProcess {
 public:
  // To be called while this process has no thread but one.
  //   kInternal  it did not start
  static absl::StatusOr<std::unique_ptr<ServedProcess>> Start(const Served& served);
  ~ServedProcess();  // ends the process

  int port() const { return shared_->port.load(); }
  int bare_port() const { return shared_->bare_port.load(); }
  int lean_port() const { return shared_->lean_port.load(); }  // 0: there is none
  const AllocationCounts& allocations() const { return shared_->allocations; }
  // What the bare server answers.
  void SetBareAnswer(int64_t bytes) { shared_->answer_bytes.store(bytes); }

 private:
  // In memory of both processes.
  struct Shared {
    std::atomic<int> port{0}, bare_port{0}, lean_port{0};
    std::atomic<int64_t> answer_bytes{0};
    AllocationCounts allocations;
  };
  class BareService;

  explicit ServedProcess(Shared* shared) : shared_(shared) {}
  // Never returns unless it fails.
  static absl::Status Serve(const Served& served, Shared* shared);

  Shared* const shared_;
  pid_t child_ = -1;
};

}  // namespace tilewire::bench

#endif  // TESTS_BENCH_SERVED_PROCESS_H_
