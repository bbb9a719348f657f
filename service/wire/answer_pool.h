// SPDX-License-Identifier: Apache-2.0
//
// The memory of answers: taken for the engine's outputs, given back when gRPC has written them, and
// kept for a while for the next answer of the same size. Thread-safe.
#ifndef SERVICE_WIRE_ANSWER_POOL_H_
#define SERVICE_WIRE_ANSWER_POOL_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/base/aligned_buffer.h"
#include "engine/threading/mutex.h"
#include "grpcpp/support/slice.h"

namespace tilewire::service {

// Slices that are still being written keep the pool alive.
class AnswerPool : public std::enable_shared_from_this<AnswerPool> {
 public:
  // Bounds on the idle buffers; one returned above them is freed at once.
  static constexpr int64_t kMaxIdleBytes = int64_t{256} << 20;
  static constexpr size_t kMaxIdleBuffers = 64;

  explicit AnswerPool(int64_t max_idle_bytes = kMaxIdleBytes) : max_idle_bytes_(max_idle_bytes) {}

  // kResourceExhausted  the system does not have `size` bytes
  absl::StatusOr<AlignedBuffer> Take(size_t size) ABSL_LOCKS_EXCLUDED(mutex_);
  void Return(AlignedBuffer buffer) ABSL_LOCKS_EXCLUDED(mutex_);
  // The buffer as a slice, which returns it when nothing refers to the slice any longer. The pool
  // must be owned by a shared_ptr.
  grpc::Slice AsSlice(AlignedBuffer buffer);

  // Frees what was returned before `time`, in the terms of SteadyNow().
  void FreeReturnedBefore(absl::Time time) ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t idle_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Idle {
    AlignedBuffer buffer;
    absl::Time since;
  };
  struct Lent;

  const int64_t max_idle_bytes_;
  mutable threading::Mutex mutex_;
  std::vector<Idle> idle_ ABSL_GUARDED_BY(mutex_);  // the last returned is the last
  int64_t idle_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tilewire::service

#endif  // SERVICE_WIRE_ANSWER_POOL_H_
