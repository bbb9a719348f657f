// SPDX-License-Identifier: Apache-2.0
//
// Which requests are traced: those whose client says that it traces them, and one in `rate` of the
// others, until `count` of all have been. The settings change while requests come. Neither asking
// nor changing takes a lock or memory. Thread-safe.
#ifndef SERVICE_TRACE_TRACE_SAMPLER_H_
#define SERVICE_TRACE_TRACE_SAMPLER_H_

#include <atomic>
#include <cstdint>
#include <optional>

namespace tilewire::service {

struct TraceTerms {
  static constexpr int64_t kNoEnd = -1;

  bool on = true;
  uint32_t rate = 1000;    // one in so many, from 1 up
  int64_t count = kNoEnd;  // how many more; or kNoEnd
};

// The terms that are to be others.
struct TraceChange {
  std::optional<bool> on;
  std::optional<uint32_t> rate;
  std::optional<int64_t> count;
};

class TraceSampler {
 public:
  explicit TraceSampler(const TraceTerms& first)
      : first_(first), on_(first.on), rate_(first.rate), left_(first.count) {}

  // Whether any request is traced now.
  bool IsOn() const {
    return on_.load(std::memory_order_relaxed) && left_.load(std::memory_order_relaxed) != 0;
  }
  // Whether the request is traced, which is asked once while IsOn(); counts it if it is.
  bool Take(bool client_traces_it);

  void Change(const TraceChange& change);
  TraceTerms terms() const;
  // The terms of the start.
  const TraceTerms& first() const { return first_; }

 private:
  bool TakeOne();

  const TraceTerms first_;
  std::atomic<bool> on_;
  std::atomic<uint32_t> rate_;
  std::atomic<int64_t> left_;
  std::atomic<uint64_t> asked_{0};  // requests whose clients do not trace them
};

}  // namespace tilewire::service

#endif  // SERVICE_TRACE_TRACE_SAMPLER_H_
