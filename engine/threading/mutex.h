// SPDX-License-Identifier: Apache-2.0
//
// The locks of the project. They are Abseil's; where threads are the standard library's
// (TILEWIRE_STD_THREADS), so are they: ThreadSanitizer sees into those, and not into a
// distribution's Abseil. Both have Abseil's interface, as far as it is used.
#ifndef ENGINE_THREADING_MUTEX_H_
#define ENGINE_THREADING_MUTEX_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#ifdef TILEWIRE_STD_THREADS
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#else
#include "absl/synchronization/notification.h"
#endif

namespace tilewire::threading {

#ifdef TILEWIRE_STD_THREADS

// Thread-safe.
class ABSL_LOCKABLE Mutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    changed_.notify_all();  // before: a waiter that holds it next may destroy it
    mutex_.unlock();
  }
  void ReaderLock() ABSL_SHARED_LOCK_FUNCTION() { mutex_.lock_shared(); }
  void ReaderUnlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock_shared(); }
  // Held before and after, and whenever `condition` is asked; released in between.
  void Await(const absl::Condition& condition) {
    changed_.wait(mutex_, [&condition] { return condition.Eval(); });
  }
  // As Await(), but returns after `timeout` at the latest; whether the condition holds then.
  bool AwaitWithTimeout(const absl::Condition& condition, absl::Duration timeout) {
    return changed_.wait_for(mutex_, absl::ToChronoNanoseconds(timeout),
                             [&condition] { return condition.Eval(); });
  }

 private:
  std::shared_mutex mutex_;
  std::condition_variable_any changed_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_->Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

class ABSL_SCOPED_LOCKABLE ReaderMutexLock {
 public:
  explicit ReaderMutexLock(Mutex* mutex) ABSL_SHARED_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_->ReaderLock();
  }
  ~ReaderMutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->ReaderUnlock(); }
  ReaderMutexLock(const ReaderMutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

// An event that happens once. Thread-safe.
class Notification {
 public:
  // The last thing a notifier does with it: a waiter may then destroy it.
  void Notify() {
    const std::lock_guard<std::mutex> lock(mutex_);
    notified_ = true;
    changed_.notify_all();
  }
  void WaitForNotification() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return notified_; });
  }
  bool HasBeenNotified() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return notified_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool notified_ = false;
};

#else

using absl::Mutex;
using absl::MutexLock;
using absl::Notification;
using absl::ReaderMutexLock;

#endif

}  // namespace tilewire::threading

#endif  // ENGINE_THREADING_MUTEX_H_
