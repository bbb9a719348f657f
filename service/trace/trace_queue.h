// SPDX-License-Identifier: Apache-2.0
//
// Requests that have been traced, from the threads that ended them to the one that writes them. Its
// memory is taken at the start. Where it is full, a request's trace is dropped: nothing waits.
#ifndef SERVICE_TRACE_TRACE_QUEUE_H_
#define SERVICE_TRACE_TRACE_QUEUE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/longest_steps.h"
#include "service/observe/flight_record.h"
#include "service/observe/trace_context.h"

namespace tilewire::service {

struct TracedRequest {
  FlightRecord record;
  FlightId id = {};            // of the request; empty: it has none
  TraceId trace_id = {};       // the client's; else one that was made
  SpanId parent_id = {};       // the client's; zeros: it named none
  LongestSteps longest_steps;  // of its run
};

// Add() by any thread, Take() by one at a time. Neither takes a lock or memory.
class TraceQueue {
 public:
  static constexpr size_t kPlaces = 4096;  // a power of two

  explicit TraceQueue(size_t places = kPlaces);

  // Whether there was a place for it.
  bool Add(const TracedRequest& request);
  // The oldest; whether there is one.
  bool Take(TracedRequest* request);

 private:
  // `turn` is the number of the request that may be put there, and one more while it is there.
  struct Place {
    std::atomic<uint64_t> turn;
    TracedRequest request;
  };

  Place& PlaceOf(uint64_t number) { return places_[number & (count_ - 1)]; }

  const size_t count_;
  const std::unique_ptr<Place[]> places_;
  std::atomic<uint64_t> next_{0};  // the number of the next request that comes
  uint64_t taken_ = 0;
};

}  // namespace tilewire::service

#endif  // SERVICE_TRACE_TRACE_QUEUE_H_
