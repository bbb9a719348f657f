// SPDX-License-Identifier: Apache-2.0
#include "service/schedule/admission.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

namespace tilewire::service {

namespace {

void RaiseTo(int64_t value, std::atomic<int64_t>* most) {
  int64_t seen = most->load(std::memory_order_relaxed);
  while (seen < value && !most->compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace

bool Admission::Take(int64_t bytes) {
  int64_t held = bytes_.load(std::memory_order_relaxed);
  do {
    if (bytes > max_bytes() - held) {
      RaiseTo(bytes, &refused_);
      return false;
    }
  } while (!bytes_.compare_exchange_weak(held, held + bytes, std::memory_order_relaxed));
  RaiseTo(held + bytes, &peak_);
  return true;
}

bool Admission::Lend(int64_t bytes) {
  if (!Take(bytes)) return false;
  lent_.fetch_add(bytes, std::memory_order_relaxed);
  CountBesideRuns(bytes);
  return true;
}

void Admission::TakeBack(int64_t bytes) {
  lent_.fetch_sub(bytes, std::memory_order_relaxed);
  GiveBack(bytes);
  CountBesideRuns(-bytes);
}

// While a loan begins or ends, it may count as well, or for nothing.
int64_t Admission::HeldByRequests() const { return std::max<int64_t>(0, bytes() - lent()); }

int64_t Admission::TakeShortage() {
  const int64_t refused = refused_.exchange(0, std::memory_order_relaxed);
  const int64_t room = refused == 0 ? 0 : std::max(refused, max_bytes() / 4);
  return std::max<int64_t>(0, bytes() + room - max_bytes());
}

absl::Status Ticket::Charge(int64_t bytes, const char* what) {
  absl::Status taken = Take(bytes, what);
  if (taken.ok()) admission_->CountBesideRuns(bytes);
  return taken;
}

absl::Status Ticket::ChargeRun(int64_t bytes, const char* what) {
  absl::Status taken = Take(bytes, what);
  if (taken.ok()) run_bytes_ += bytes;
  return taken;
}

absl::Status Ticket::ChangeTo(int64_t bytes, const char* what) {
  const int64_t beside = BesideRun();
  if (bytes > bytes_) {
    absl::Status taken = Take(bytes - bytes_, what);
    if (!taken.ok()) return taken;
  } else {
    admission_->GiveBack(bytes_ - bytes);
  }
  admission_->CountBesideRuns(bytes - beside);
  bytes_ = bytes;
  run_bytes_ = 0;
  return absl::OkStatus();
}

void Ticket::GiveBack(int64_t bytes) {
  const int64_t beside = std::min(bytes, BesideRun());
  admission_->GiveBack(bytes);
  admission_->CountBesideRuns(-beside);
  bytes_ -= bytes;
  run_bytes_ -= bytes - beside;
}

absl::Status Ticket::Take(int64_t bytes, const char* what) {
  if (bytes > admission_->max_bytes() - bytes_) {
    refusal_ = RequestRefusal::kTooLarge;
    const std::string held =
        bytes_ > 0 ? absl::StrCat(", with the ", bytes_, " bytes that it holds,") : "";
    return absl::ResourceExhaustedError(absl::StrCat(
        what, " of ", bytes, " bytes", held, " exceed the ", admission_->max_bytes(),
        " bytes that all requests may hold (--max_work_mb; a smaller batch takes less)"));
  }
  if (!admission_->Take(bytes)) {
    refusal_ = RequestRefusal::kMemory;
    const int64_t lent = admission_->lent();
    const std::string loads = lent > 0 ? absl::StrCat(", and a model that loads ", lent, ",") : "";
    return absl::UnavailableError(absl::StrCat("memory for ", what, " of ", bytes,
                                               " bytes is not free now: requests hold ",
                                               admission_->HeldByRequests(), loads, " of ",
                                               admission_->max_bytes(), " bytes (--max_work_mb)"));
  }
  bytes_ += bytes;
  return absl::OkStatus();
}

}  // namespace tilewire::service
