// SPDX-License-Identifier: Apache-2.0
#include "service/trace/trace_queue.h"

namespace tilewire::service {

TraceQueue::TraceQueue(size_t places) : count_(places), places_(new Place[places]) {
  for (size_t i = 0; i < places; ++i) places_[i].turn.store(i, std::memory_order_relaxed);
}

bool TraceQueue::Add(const TracedRequest& request) {
  uint64_t number = next_.load(std::memory_order_relaxed);
  while (true) {
    Place& place = PlaceOf(number);
    const uint64_t turn = place.turn.load(std::memory_order_acquire);
    if (turn < number) return false;  // the request of the last round is still there
    if (turn > number) {              // another thread has taken the number
      number = next_.load(std::memory_order_relaxed);
      continue;
    }
    if (!next_.compare_exchange_weak(number, number + 1, std::memory_order_relaxed)) continue;
    place.request = request;
    place.turn.store(number + 1, std::memory_order_release);
    return true;
  }
}

bool TraceQueue::Take(TracedRequest* request) {
  Place& place = PlaceOf(taken_);
  if (place.turn.load(std::memory_order_acquire) != taken_ + 1) return false;
  *request = place.request;
  place.turn.store(taken_ + count_, std::memory_order_release);
  ++taken_;
  return true;
}

}  // namespace tilewire::service
