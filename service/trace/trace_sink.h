// SPDX-License-Identifier: Apache-2.0
//
// Where traces go. One thread uses it; it may ask others for nothing, and drops what it cannot
// write: a full disk or a collector that is away is told once in the log, and counted.
#ifndef SERVICE_TRACE_TRACE_SINK_H_
#define SERVICE_TRACE_TRACE_SINK_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "service/trace/trace.h"

namespace tilewire::service {

// Why traces are lost, and how the metric and the log name it.
enum class TraceLoss { kQueueFull, kFile, kCollector };
inline constexpr std::pair<TraceLoss, const char*> kTraceLosses[] = {
    {TraceLoss::kQueueFull, "queue_full"},
    {TraceLoss::kFile, "file"},
    {TraceLoss::kCollector, "collector"}};

class TraceSink {
 public:
  explicit TraceSink(TraceLoss loss) : loss_(loss) {}
  virtual ~TraceSink() = default;
  TraceSink(const TraceSink&) = delete;

  // Takes them, or drops and counts them. Quick.
  virtual void Write(absl::Span<const Trace> traces) = 0;
  // Goes on with what it has taken, for `longest` at most; whether all of it is away.
  virtual bool Advance(absl::Duration /*longest*/) { return true; }
  // Gives up what is not away, and counts it as lost.
  virtual void End() {}

  TraceLoss loss() const { return loss_; }
  // Traces that were lost. Any thread may ask.
  int64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 protected:
  // `why` goes to the log the first time.
  void Drop(int64_t traces, const std::string& why);

 private:
  const TraceLoss loss_;
  std::atomic<int64_t> dropped_{0};
  bool told_ = false;
};

}  // namespace tilewire::service

#endif  // SERVICE_TRACE_TRACE_SINK_H_
