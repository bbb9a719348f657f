// SPDX-License-Identifier: Apache-2.0
#include "service/front/call_queue.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "engine/threading/urgent_work.h"
#include "service/observe/steady_time.h"
#include "spdlog/spdlog.h"

namespace tilewire::service {
namespace {

constexpr int kCoresPerThread = 4;

// How often threads are looked at while something happens, and while nothing does.
constexpr absl::Duration kLookEvery = absl::Milliseconds(5);
constexpr absl::Duration kLookWhenIdle = absl::Milliseconds(250);

// A thread joins where those that serve are busier, and leaves where the others would still not be
// this busy without it.
constexpr double kBusy = 0.8, kIdle = 0.5;

// The longest that a thread waits on the queue once it is no longer needed.
constexpr std::chrono::milliseconds kLastWait{50};

absl::Duration TimeOf(clockid_t clock) {
  timespec time = {};
  if (clock != -1) clock_gettime(clock, &time);
  return absl::DurationFromTimespec(time);
}

// An event that finds no memory ends alone.
void Happen(Event* event, bool ok) {
  try {
    event->Happen(ok);
  } catch (const std::bad_alloc&) {
    spdlog::error("an event of a call found no memory");
  }
}

}  // namespace

int ThreadDemand::Wanted(double busy_threads, int held_up) {
  if (busy_threads > kBusy * by_load_) {
    ++by_load_;
  } else if (busy_threads < kIdle * (by_load_ - 1)) {
    --by_load_;
  }
  by_load_ = std::clamp(by_load_, 1, most_by_load_);
  return std::min(std::max(by_load_, held_up + 1), most());
}

CallQueue::CallQueue(grpc::ServerBuilder* builder, int cores)
    : queue_(builder->AddCompletionQueue()),
      demand_(std::max(1, cores / kCoresPerThread)),
      looked_(SteadyNow()),
      seats_(demand_.most()) {}

void CallQueue::Start(std::function<void()> look_early) {
  look_early_ = std::move(look_early);
  for (const auto& ask_for_calls : methods_) ask_for_calls();
  for (int i = 0; i < demand_.most(); ++i) {
    seats_[i].thread = std::make_unique<threading::BackgroundThread>(
        i == 0 ? "tw-calls" : "tw-more-calls", [this, i] { Serve(i); });
  }
}

void CallQueue::AwaitTurn(int index) {
  if (index == 0) return;
  const auto wanted = [this, index]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(turns_mutex_) {
    return ending_ || serving_ > index;
  };
  threading::MutexLock lock(&turns_mutex_);
  turns_mutex_.Await(absl::Condition(&wanted));
}

void CallQueue::Serve(int index) {
  using Next = grpc::CompletionQueue::NextStatus;
  Seat& seat = seats_[index];
  clockid_t clock = -1;
  if (pthread_getcpuclockid(pthread_self(), &clock) == 0) seat.clock.store(clock);
  while (true) {
    AwaitTurn(index);
    void* tag = nullptr;
    bool ok = false;
    const Next next =
        index == 0 ? (queue_->Next(&tag, &ok) ? Next::GOT_EVENT : Next::SHUTDOWN)
                   : queue_->AsyncNext(&tag, &ok, std::chrono::system_clock::now() + kLastWait);
    if (next == Next::SHUTDOWN) return;
    if (next == Next::TIMEOUT) continue;
    seat.steps.fetch_add(1);  // before it reads what Look() sets before it reads this
    if (looks_seldom_.load() && looks_seldom_.exchange(false)) look_early_();
    {
      const threading::UrgentWork urgent;
      Happen(static_cast<Event*>(tag), ok);
    }
    seat.steps.fetch_add(1, std::memory_order_relaxed);
  }
}

absl::Duration CallQueue::BusySinceLastLook(bool* happened, int* held_up) {
  absl::Duration busy;
  for (Seat& seat : seats_) {
    const int64_t steps = seat.steps.load();
    const absl::Duration time = TimeOf(seat.clock.load());
    busy += time - seat.seen_time;
    if (steps != seat.seen_steps) *happened = true;
    if (steps == seat.seen_steps && steps % 2 == 1) ++*held_up;
    seat.seen_steps = steps;
    seat.seen_time = time;
  }
  return busy;
}

absl::Time CallQueue::Look() {
  const absl::Time now = SteadyNow();
  const absl::Duration passed = now - looked_;
  if (passed < kLookEvery) return looked_ + kLookEvery;
  looks_seldom_.store(true);
  bool happened = false;
  int held_up = 0;
  const absl::Duration busy = BusySinceLastLook(&happened, &held_up);
  const bool soon = happened || held_up > 0;
  if (soon) looks_seldom_.store(false);
  const int wanted = demand_.Wanted(absl::FDivDuration(busy, passed), held_up);
  looked_ = now;
  for (const auto& ask_for_calls : methods_) ask_for_calls();
  threading::MutexLock lock(&turns_mutex_);
  serving_ = wanted;
  return now + (soon ? kLookEvery : kLookWhenIdle);
}

void CallQueue::End() {
  {
    threading::MutexLock lock(&asking_mutex_);
    if (std::exchange(closed_, true)) return;
  }
  queue_->Shutdown();
  {
    threading::MutexLock lock(&turns_mutex_);
    ending_ = true;
  }
  for (Seat& seat : seats_) seat.thread = nullptr;
}

}  // namespace tilewire::service
