// SPDX-License-Identifier: Apache-2.0
//
// gRPC's completion queue with the threads that serve it: they receive, decode and admit, and
// answer what is short.
//
// One thread waits on the queue, and the others sleep. While two wait, gRPC 1.51 wakes the second
// whenever something comes for the first, so that one thread goes on waiting; that takes longer
// than a short request. Its own threads, which serve its callback interface, are never fewer than
// two, and sleep for 100 ms after a second in which nothing came. Another thread joins when those
// that serve are busy most of the time, or one is held up in what it runs (Look()).
#ifndef SERVICE_FRONT_CALL_QUEUE_H_
#define SERVICE_FRONT_CALL_QUEUE_H_

#include <time.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "engine/threading/background_thread.h"
#include "engine/threading/mutex.h"
#include "grpcpp/grpcpp.h"

namespace tilewire::service {

// The tag of an operation: happens once for each operation that it is given to.
class Event {
 public:
  // On a thread of the queue. `ok` is what gRPC says of the operation.
  virtual void Happen(bool ok) = 0;

  // As gRPC takes it.
  void* tag() { return this; }

 protected:
  ~Event() = default;
};

// Calls a method of its owner.
template <typename Owner, void (Owner::*method)(bool ok)>
class EventOf final : public Event {
 public:
  explicit EventOf(Owner* owner) : owner_(owner) {}
  void Happen(bool ok) override { (owner_->*method)(ok); }

 private:
  Owner* const owner_;
};

// Ends a call: `finish` gives gRPC what `get_status` returns, or fewer words where there is no
// memory for them. A call that is never ended would hold up its client and the server's shutdown.
template <typename GetStatus, typename Finish>
void FinishCall(GetStatus get_status, Finish finish) {
  try {
    finish(get_status());
  } catch (const std::bad_alloc&) {  // gRPC copies texts before it begins
    finish(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "no memory"));
  }
}

// How many threads serve.
class ThreadDemand {
 public:
  // `most_by_load` threads for load, and one more where threads are held up.
  explicit ThreadDemand(int most_by_load) : most_by_load_(most_by_load) {}

  // Since the last look: `busy_threads` is the time that all threads computed over the time that
  // passed; `held_up` of them have been in the same event ever since.
  int Wanted(double busy_threads, int held_up);

  int most() const { return most_by_load_ + 1; }

 private:
  const int most_by_load_;
  int by_load_ = 1;
};

// Thread-safe.
class CallQueue {
 public:
  // Adds a queue to the server that `builder` will build. One thread for four of `cores` may serve
  // it, at least one.
  CallQueue(grpc::ServerBuilder* builder, int cores);
  ~CallQueue() { End(); }
  CallQueue(const CallQueue&) = delete;

  // `ask_for_calls` calls AskFor() until gRPC awaits enough calls: when the threads start, and at
  // each look, because it may have found no memory before. Before Start() and the first look.
  void Add(std::function<void()> ask_for_calls) { methods_.push_back(std::move(ask_for_calls)); }

  // Once the server has started. `look_early` is called, on a thread of the queue, when something
  // happens long before the time that Look() has returned; it must be valid until End() returns.
  void Start(std::function<void()> look_early);

  // `make_call` returns a unique_ptr of a call, whose Ask() asks gRPC for what will arrive as an
  // event; the call then owns itself. False if memory for it runs out, or after End().
  template <typename MakeCall>
  bool AskFor(MakeCall make_call) ABSL_LOCKS_EXCLUDED(asking_mutex_) {
    try {
      auto call = make_call();
      threading::MutexLock lock(&asking_mutex_);
      if (closed_) return false;
      call->Ask(queue_.get());
      (void)call.release();  // it may have arrived, and be gone
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  // Lets more or fewer threads serve, as needed, and asks for calls. Returns when to look again.
  // Never called by two threads at once.
  absl::Time Look() ABSL_LOCKS_EXCLUDED(turns_mutex_);

  // Once the server has shut down, and before it is destroyed: returns when every event has
  // happened.
  void End() ABSL_LOCKS_EXCLUDED(asking_mutex_, turns_mutex_);

 private:
  // A thread, with its state as it last reported it and as Look() last saw it.
  struct Seat {
    std::atomic<int64_t> steps{0};  // odd within an event
    std::atomic<clockid_t> clock{-1};
    int64_t seen_steps = 0;
    absl::Duration seen_time;
    std::unique_ptr<threading::BackgroundThread> thread;
  };

  void Serve(int index);
  void AwaitTurn(int index) ABSL_LOCKS_EXCLUDED(turns_mutex_);
  absl::Duration BusySinceLastLook(bool* happened, int* held_up);

  const std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::vector<std::function<void()>> methods_;
  std::function<void()> look_early_;
  std::atomic<bool> looks_seldom_{false};  // until something happens
  threading::Mutex asking_mutex_;
  bool closed_ ABSL_GUARDED_BY(asking_mutex_) = false;
  // Threads with a lower index than this serve.
  threading::Mutex turns_mutex_;
  int serving_ ABSL_GUARDED_BY(turns_mutex_) = 1;
  bool ending_ ABSL_GUARDED_BY(turns_mutex_) = false;  // all serve, and see the queue's end
  // Used by Look() only.
  ThreadDemand demand_;
  absl::Time looked_;
  std::vector<Seat> seats_;
};

}  // namespace tilewire::service

#endif  // SERVICE_FRONT_CALL_QUEUE_H_
