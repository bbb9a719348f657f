// SPDX-License-Identifier: Apache-2.0
//
// A budget of bytes for everything that requests hold: a ticket is charged the request, its
// activations while it runs, and its answer, and gives them back when it is destroyed, which is
// when the transport is done with the call. A model that loads borrows of it what is free. The
// tensors of a run lie in memory that the engine pools; of everything else it is told, so that what
// it keeps for later runs makes way.
#ifndef SERVICE_SCHEDULE_ADMISSION_H_
#define SERVICE_SCHEDULE_ADMISSION_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "service/observe/refusal.h"

namespace tilewire::service {

// Thread-safe; outlives its tickets.
class Admission {
 public:
  // `beside_runs`, thread-safe, is called with each change of what is held for anything but runs.
  explicit Admission(int64_t max_bytes, std::function<void(int64_t more)> beside_runs = nullptr)
      : max_bytes_(max_bytes), beside_runs_(std::move(beside_runs)) {}
  Admission(const Admission&) = delete;

  int64_t max_bytes() const { return max_bytes_.load(std::memory_order_relaxed); }
  // Tickets that hold more keep it.
  void SetMaxBytes(int64_t bytes) { max_bytes_.store(bytes, std::memory_order_relaxed); }
  // Takes `bytes` for a load until TakeBack(). Returns false, and takes none, where tickets hold
  // some of them; TakeShortage() then asks for as much, as after a charge that was refused.
  bool Lend(int64_t bytes);
  void TakeBack(int64_t bytes);
  // Held by tickets, and lent.
  int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  int64_t lent() const { return lent_.load(std::memory_order_relaxed); }
  int64_t HeldByRequests() const;
  // The most that was held since the last call.
  int64_t TakePeak() { return peak_.exchange(bytes(), std::memory_order_relaxed); }
  // How many bytes have to be given back until no more is held than may be and, if a charge or a
  // loan was refused since the last call, until there is room for the largest of those and for a
  // quarter of all.
  int64_t TakeShortage();

 private:
  friend class Ticket;
  bool Take(int64_t bytes);
  void GiveBack(int64_t bytes) { bytes_.fetch_sub(bytes, std::memory_order_relaxed); }
  void CountBesideRuns(int64_t more) const {
    if (more != 0 && beside_runs_ != nullptr) beside_runs_(more);
  }

  std::atomic<int64_t> max_bytes_;
  std::atomic<int64_t> bytes_{0}, lent_{0}, peak_{0};
  std::atomic<int64_t> refused_{0};  // the largest since the last TakeShortage()
  const std::function<void(int64_t)> beside_runs_;
};

// Thread-compatible.
class Ticket {
 public:
  explicit Ticket(Admission* admission) : admission_(admission) {}
  ~Ticket() { GiveBack(bytes_); }
  Ticket(const Ticket&) = delete;

  // Charges `bytes` more for `what`, which the error names.
  //   kResourceExhausted  with what the ticket was charged before they exceed the whole budget
  //   kUnavailable        others hold what is missing
  absl::Status Charge(int64_t bytes, const char* what);
  // The same for what a run takes from the engine.
  absl::Status ChargeRun(int64_t bytes, const char* what);
  // At most bytes(); what was charged for a run goes last.
  void GiveBack(int64_t bytes);
  // From now on it holds `bytes` for `what`, and nothing else. The errors of Charge().
  absl::Status ChangeTo(int64_t bytes, const char* what);
  int64_t bytes() const { return bytes_; }
  // Why the last charge that was refused was: kTooLarge or kMemory; kNone if none was.
  RequestRefusal refusal() const { return refusal_; }

 private:
  absl::Status Take(int64_t bytes, const char* what);
  int64_t BesideRun() const { return bytes_ - run_bytes_; }

  Admission* const admission_;
  int64_t bytes_ = 0;
  int64_t run_bytes_ = 0;  // of them
  RequestRefusal refusal_ = RequestRefusal::kNone;
};

// A ticket's charge for what is held for a while. Thread-compatible.
class PassingCharge {
 public:
  explicit PassingCharge(Ticket* ticket) : ticket_(ticket) {}  // null: nothing is charged
  ~PassingCharge() {
    if (ticket_ != nullptr) ticket_->GiveBack(bytes_);
  }
  PassingCharge(const PassingCharge&) = delete;

  // As Ticket::Charge().
  absl::Status Add(int64_t bytes, const char* what) {
    if (ticket_ == nullptr) return absl::OkStatus();
    absl::Status charged = ticket_->Charge(bytes, what);
    if (charged.ok()) bytes_ += bytes;
    return charged;
  }

 private:
  Ticket* const ticket_;
  int64_t bytes_ = 0;
};

}  // namespace tilewire::service

#endif  // SERVICE_SCHEDULE_ADMISSION_H_
