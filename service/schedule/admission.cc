// SPDX-License-Identifier: Apache-2.0
#include "service/schedule/admission.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace tilewire::service {

bool Admission::Take(int64_t bytes) {
  int64_t held = bytes_.load(std::memory_order_relaxed);
  do {
    if (bytes > max_bytes() - held) return false;
  } while (!bytes_.compare_exchange_weak(held, held + bytes, std::memory_order_relaxed));
  int64_t peak = peak_.load(std::memory_order_relaxed);
  while (peak < held + bytes &&
         !peak_.compare_exchange_weak(peak, held + bytes, std::memory_order_relaxed)) {
  }
  return true;
}

absl::Status Ticket::Charge(int64_t bytes, const char* what) {
  if (bytes > admission_->max_bytes() - bytes_) {
    const std::string held =
        bytes_ > 0 ? absl::StrCat(", with the ", bytes_, " bytes that it holds,") : "";
    return absl::ResourceExhaustedError(absl::StrCat(
        what, " of ", bytes, " bytes", held, " exceed the ", admission_->max_bytes(),
        " bytes that all requests may hold (--max_work_mb; a smaller batch takes less)"));
  }
  if (!admission_->Take(bytes)) {
    return absl::UnavailableError(absl::StrCat(
        "memory for ", what, " of ", bytes, " bytes is not free now: requests hold ",
        admission_->bytes(), " of ", admission_->max_bytes(), " bytes (--max_work_mb)"));
  }
  bytes_ += bytes;
  return absl::OkStatus();
}

}  // namespace tilewire::service
