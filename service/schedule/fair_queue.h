// SPDX-License-Identifier: Apache-2.0
//
// Work that waits, a sub-queue per model. Within a model: by priority, then by the time until which
// it may wait (in steps of kDeadlineStep), then first come, first served. Between models: the one
// that has received the least compute time; a model that was idle starts level with the least
// served of the others, so that it gains no credit by waiting. Thread-compatible.
#ifndef SERVICE_SCHEDULE_FAIR_QUEUE_H_
#define SERVICE_SCHEDULE_FAIR_QUEUE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "service/schedule/work.h"

namespace tilewire::service {

class FairQueue {
 public:
  FairQueue() {
    spare_places_.reserve(kSpareNodes);
    spare_expiries_.reserve(kSpareNodes);
  }

  // Requests whose deadlines differ by less are served in the order of their arrival.
  static constexpr absl::Duration kDeadlineStep = absl::Milliseconds(250);
  // Short work is expected to take at most this long, and may run serially. Work of unknown time is
  // not short.
  static constexpr absl::Duration kShortWork = absl::Milliseconds(10);

  // `expected` is the time that the work will take, zero if unknown. It leaves the queue by itself,
  // through TakeExpired(), at `expires`. It is not in the queue if this throws, for want of memory.
  void Push(Work* work, absl::Duration expected, absl::Time expires);
  // False if it is not in the queue (any more).
  bool Remove(Work* work);

  // The work that is due next; null if none waits. Its model is charged the expected time at once,
  // so that its next work is queued after it.
  Work* Pop();
  // As Pop(), for the first short work that is expected to take at most `longest`; longer work of
  // its model may be ahead of it.
  Work* PopShort(absl::Duration longest);
  // As Pop(), for the first untimed work: of unknown time, but of one that will be known once it
  // has run, and that may run serially.
  Work* PopUntimed();
  // Takes back work that was popped; it waits outside the order, where it may be removed or expire,
  // until Unpark() of its cost key puts it where it was.
  void Park(Work* work);
  // Returns how many were parked.
  int64_t Unpark(uint64_t cost_key);
  // Corrects what Pop() charged.
  void Charge(const std::string& model, absl::Duration taken, absl::Duration expected);

  std::vector<Work*> TakeExpired(absl::Time now);
  // InfiniteFuture if nothing waits.
  absl::Time NextExpiry() const;

  int64_t size() const { return static_cast<int64_t>(by_expiry_.size()); }
  // The number of pieces of work that Pop() may return.
  int64_t in_order() const { return size() - parked_count_; }
  int64_t short_in_order() const { return short_in_order_; }
  int64_t untimed_in_order() const { return untimed_in_order_; }
  int64_t SizeOf(const std::string& model) const;
  // The models of which something waits, and how much.
  void VisitWaiting(absl::FunctionRef<void(const std::string& model, int64_t waiting)> visit) const;
  // Expected time of all that waits before new work of `model` would run: its own backlog but for
  // what has a lower priority, and as much of each other model's.
  absl::Duration WorkAhead(const std::string& model, int priority) const;

 private:
  using Place = std::tuple<int, int64_t, int64_t>;  // -priority, step of expiry, sequence
  using Works = std::map<Place, Work*>;
  using ByExpiry = std::set<std::pair<absl::Time, Work*>>;
  struct ModelQueue {
    Works works;  // without those that are parked
    int64_t parked = 0;
    absl::Duration received, backlog;  // the latter with those that are parked
  };

  // Nodes of work that has left, for that which comes next, so that an ordinary request allocates
  // nothing.
  static constexpr size_t kSpareNodes = 64;

  static Place PlaceOf(const Work& work);
  static bool IsShort(const Work& work);
  static bool IsUntimed(const Work& work);
  using Wanted = absl::FunctionRef<bool(const Work&)>;
  static Work* First(const ModelQueue& queue, Wanted wanted);
  Work* PopFirst(Wanted wanted);
  Work* Take(ModelQueue* queue, Work* work);
  void Drop(ModelQueue* queue, Work* work);
  static absl::Duration BacklogFrom(const ModelQueue& queue, int priority);
  void InsertPlace(ModelQueue* queue, Work* work);
  void RemovePlace(ModelQueue* queue, Work* work);
  void InsertExpiry(Work* work);
  void RemoveExpiry(Work* work);
  absl::Duration LeastReceived() const;
  void ForgetIdleModels();
  void KeepSpareNodes();  // one of each

  std::map<std::string, ModelQueue> models_;
  absl::flat_hash_map<uint64_t, absl::flat_hash_set<Work*>> parked_;  // by cost key
  int64_t parked_count_ = 0, short_in_order_ = 0, untimed_in_order_ = 0;
  ByExpiry by_expiry_;
  std::vector<Works::node_type> spare_places_;
  std::vector<ByExpiry::node_type> spare_expiries_;
  int64_t next_sequence_ = 0;
};

}  // namespace tilewire::service

#endif  // SERVICE_SCHEDULE_FAIR_QUEUE_H_
