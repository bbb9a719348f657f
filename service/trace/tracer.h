// SPDX-License-Identifier: Apache-2.0
//
// Traces of requests, from the thread that ends a request to the sinks, which one thread serves
// (`tw-trace`). A request costs a copy of its record into a queue with a bound; where the queue is
// full, its trace is dropped and counted. Thread-safe.
#ifndef SERVICE_TRACE_TRACER_H_
#define SERVICE_TRACE_TRACER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "engine/threading/background_thread.h"
#include "engine/threading/mutex.h"
#include "service/trace/trace.h"
#include "service/trace/trace_queue.h"
#include "service/trace/trace_sampler.h"
#include "service/trace/trace_sink.h"

namespace tilewire::service {

class Tracer {
 public:
  // The longest time that the end waits for sinks.
  static constexpr absl::Duration kLongestEnd = absl::Seconds(1);

  struct Options {
    TraceTerms terms;
    TraceMaker::NameOf name_of;
    std::string file, mode;  // as TraceSetting tells them
    size_t places = TraceQueue::kPlaces;
  };

  Tracer(Options options, std::vector<std::unique_ptr<TraceSink>> sinks);
  // As Finish().
  ~Tracer();

  // Writes what was added, within kLongestEnd, and gives up the rest: from then on Dropped() knows
  // all losses, and a line of the log has told them, if there are any. Once; nothing may be added
  // afterwards.
  void Finish() ABSL_LOCKS_EXCLUDED(mutex_);

  TraceSampler& sampler() { return sampler_; }
  const TraceSampler& sampler() const { return sampler_; }
  const std::string& file() const { return options_.file; }
  const std::string& mode() const { return options_.mode; }

  // The request has ended. No lock, no memory.
  void Add(const TracedRequest& request) {
    if (!queue_.Add(request)) not_queued_.fetch_add(1, std::memory_order_relaxed);
  }

  // Traces that were lost.
  int64_t Dropped(TraceLoss loss) const;

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  bool AwaitStop() ABSL_LOCKS_EXCLUDED(mutex_);
  void WriteAdded();
  void LogLosses() const;
  void Look();

  const Options options_;
  const std::vector<std::unique_ptr<TraceSink>> sinks_;
  TraceSampler sampler_;
  TraceQueue queue_;
  TraceMaker maker_;
  std::atomic<int64_t> not_queued_{0};
  threading::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<threading::BackgroundThread> thread_;  // last: it stops before what it uses goes
};

}  // namespace tilewire::service

#endif  // SERVICE_TRACE_TRACER_H_
