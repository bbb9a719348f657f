// SPDX-License-Identifier: Apache-2.0
//
// How many threads a piece of work keeps busy: the thread that does it, and those that help with
// its loops. A helping thread reads its core's clock when it joins a loop and when it leaves it,
// and adds the difference to one number: no lock, nothing for loops of one thread.
//
//   Cores() = (ticks of the owner + ticks of the helpers - ticks of works within) / ticks of the
//             owner
//
// Works on one thread nest: what an inner one takes is not the outer one's.
#ifndef ENGINE_THREADING_CORE_TIME_H_
#define ENGINE_THREADING_CORE_TIME_H_

#include <atomic>
#include <cstdint>

namespace tilewire::threading {

// Counts while it lives, on the thread that made it and in the loops that this thread begins. Used
// by that thread alone.
class CoreTime {
 public:
  CoreTime();
  ~CoreTime();
  CoreTime(const CoreTime&) = delete;

  // The mean number of threads that worked on it until now. Loops that have not ended are not in
  // it.
  double Cores() const;

  // The work that the calling thread does or helps with; null: of none.
  static CoreTime* OfThread();

 private:
  friend class Helping;

  CoreTime* const outer_;
  const int64_t start_;
  std::atomic<int64_t> others_{0};  // ticks of helpers, less those of works within
};

// Counts the calling thread as a helper of `work` while it lives, unless it is known to work on it.
// `work` may be null, and outlives this object.
class Helping {
 public:
  explicit Helping(CoreTime* work);
  ~Helping();
  Helping(const Helping&) = delete;

 private:
  CoreTime* const work_;  // null: nothing is counted
  CoreTime* const outer_;
  const int64_t start_;
};

}  // namespace tilewire::threading

#endif  // ENGINE_THREADING_CORE_TIME_H_
