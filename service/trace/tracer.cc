// SPDX-License-Identifier: Apache-2.0
#include "service/trace/tracer.h"

#include <cstddef>
#include <new>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "service/observe/steady_time.h"
#include "spdlog/spdlog.h"

namespace tilewire::service {
namespace {

// Between two looks at the queue, which has room for what comes meanwhile.
constexpr absl::Duration kBetweenLooks = absl::Milliseconds(100);
constexpr absl::Duration kLastLooks = absl::Milliseconds(20);

// Traces that are made at a time, which bounds their memory.
constexpr size_t kAtATime = 256;

}  // namespace

Tracer::Tracer(Options options, std::vector<std::unique_ptr<TraceSink>> sinks)
    : options_(std::move(options)),
      sinks_(std::move(sinks)),
      sampler_(options_.terms),
      queue_(options_.places),
      maker_(options_.name_of),
      thread_(std::in_place, "tw-trace", [this] { Run(); }) {}

Tracer::~Tracer() { Finish(); }

void Tracer::Finish() {
  if (!thread_.has_value()) return;
  {
    threading::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.reset();
  LogLosses();
}

void Tracer::LogLosses() const {
  int64_t all = 0;
  std::string losses;
  for (const auto& [loss, name] : kTraceLosses) {
    const int64_t dropped = Dropped(loss);
    all += dropped;
    if (dropped > 0) absl::StrAppend(&losses, losses.empty() ? "" : ", ", name, " ", dropped);
  }
  if (all > 0) spdlog::warn("traces that were lost since the start: {} ({})", all, losses);
}

int64_t Tracer::Dropped(TraceLoss loss) const {
  if (loss == TraceLoss::kQueueFull) return not_queued_.load(std::memory_order_relaxed);
  int64_t dropped = 0;
  for (const auto& sink : sinks_) dropped += sink->loss() == loss ? sink->dropped() : 0;
  return dropped;
}

bool Tracer::AwaitStop() {
  threading::MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(absl::Condition(&stopping_), kBetweenLooks);
}

void Tracer::WriteAdded() {
  std::vector<Trace> traces;
  TracedRequest request;
  do {
    traces.clear();
    while (traces.size() < kAtATime && queue_.Take(&request))
      traces.push_back(maker_.Make(request));
    if (traces.empty()) return;
    for (const auto& sink : sinks_) sink->Write(traces);
  } while (traces.size() == kAtATime);
}

// When memory runs out, the traces at hand are lost; the next call carries on.
void Tracer::Look() {
  try {
    WriteAdded();
    for (const auto& sink : sinks_) sink->Advance(kBetweenLooks);
  } catch (const std::bad_alloc&) {
    not_queued_.fetch_add(1, std::memory_order_relaxed);
  }
}

void Tracer::Run() {
  while (!AwaitStop()) Look();
  Look();
  const absl::Time end = SteadyNow() + kLongestEnd;
  for (const auto& sink : sinks_) {
    while (!sink->Advance(end - SteadyNow()) && SteadyNow() < end) absl::SleepFor(kLastLooks);
    sink->End();
  }
}

}  // namespace tilewire::service
