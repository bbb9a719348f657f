// SPDX-License-Identifier: Apache-2.0
//
// Buffers for user-mode scratchpads and workspaces, kept per thread: taking one neither allocates
// nor waits for a lock when the thread has run the same work before. Memory of a peak returns to
// the system: a buffer that returns above a bound is freed at once, one that its thread has not
// needed while it took kKeptTakes others is freed then, and FreeIdle() frees those that are idle.
// Where a new buffer would exceed the bound of all, or the system refuses it, idle ones are freed
// first. Thread-safe.
#ifndef ENGINE_THREADING_SCRATCHPAD_H_
#define ENGINE_THREADING_SCRATCHPAD_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/base/aligned_buffer.h"

namespace tilewire {

class ScratchpadPool {
 public:
  static constexpr uint64_t kKeptTakes = 1024;

  // A buffer in use; returns to the pool when destroyed. Move-only. The pool must outlive it.
  class Lease {
   public:
    Lease() = default;
    Lease(Lease&& other) noexcept;
    Lease& operator=(Lease&& other) noexcept;
    ~Lease();
    std::byte* data() { return buffer_.data(); }
    size_t size() const { return buffer_.size(); }  // at least what was asked for

   private:
    friend class ScratchpadPool;
    ScratchpadPool* pool_ = nullptr;
    AlignedBuffer buffer_;
  };

  // Keeps at most this many idle bytes; a buffer that returns above it is freed at once.
  // The default holds the activations of large volumes, which cost as much to clear as to compute.
  explicit ScratchpadPool(int64_t max_idle_bytes = int64_t{4} << 30);
  ~ScratchpadPool();
  // From now on, idle buffers are kept only where they and those in use stay within `bytes`
  // together. No buffer in use is ever refused for that.
  void Bound(int64_t bytes);
  // Others hold `more` bytes more within that bound, or fewer; idle buffers make way.
  void CountBeside(int64_t more);

  // At least `bytes` bytes on a 64-byte boundary, uninitialised: the smallest idle buffer of this
  // thread that is large enough and not four times too large, or else a new one. 0 bytes gives an
  // empty lease. kResourceExhausted.
  absl::StatusOr<Lease> Take(size_t bytes);

  // Frees the buffers that nothing has used for so long; returns their bytes.
  int64_t FreeIdle(absl::Duration unused_for);

  int64_t idle_bytes() const;
  int64_t leased_bytes() const;

 private:
  absl::StatusOr<AlignedBuffer> Allocate(size_t bytes);
  void Return(AlignedBuffer buffer);
  struct Shards;
  std::unique_ptr<Shards> shards_;
};

}  // namespace tilewire

#endif  // ENGINE_THREADING_SCRATCHPAD_H_
