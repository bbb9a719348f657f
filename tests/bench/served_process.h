// SPDX-License-Identifier: Apache-2.0
//
// A process that serves, beside the one that measures. Its allocations are counted.
#ifndef TESTS_BENCH_SERVED_PROCESS_H_
#define TESTS_BENCH_SERVED_PROCESS_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "tests/bench/counted_malloc.h"

namespace tilewire::bench {

class ServedProcess {
 public:
  // In memory of both processes.
  struct Shared {
    std::atomic<int> port{0};                // set once it answers
    std::atomic<int64_t> answer_bytes{256};  // what a bare server answers
    AllocationCounts allocations;
  };
  // Called in the new process. Serves until the process ends, unless it fails.
  using Serve = std::function<absl::Status(Shared* shared)>;

  // To be called while this process has no thread but one.
  //   kInternal  it did not start
  static absl::StatusOr<std::unique_ptr<ServedProcess>> Start(const Serve& serve);
  ~ServedProcess();  // ends the process

  int port() const { return shared_->port.load(); }
  const AllocationCounts& allocations() const { return shared_->allocations; }
  void SetBareAnswer(int64_t bytes) { shared_->answer_bytes.store(bytes); }

 private:
  explicit ServedProcess(Shared* shared) : shared_(shared) {}
  absl::Status AwaitPort() const;

  Shared* const shared_;
  pid_t child_ = -1;
};

}  // namespace tilewire::bench

#endif  // TESTS_BENCH_SERVED_PROCESS_H_
