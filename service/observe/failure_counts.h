// SPDX-License-Identifier: Apache-2.0
//
// Counts of the requests that were not answered: by the code of their status, and by why they were
// refused. Counting is an addition or two: no lock, no allocation. Thread-safe.
#ifndef SERVICE_OBSERVE_FAILURE_COUNTS_H_
#define SERVICE_OBSERVE_FAILURE_COUNTS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "service/observe/counters.h"
#include "service/observe/refusal.h"
#include "service/observe/status_codes.h"

namespace tilewire::service {

class FailureCounts {
 public:
  struct Sums {
    std::array<int64_t, kStatusCodes> by_code = {};
    std::array<int64_t, kRefusals> by_refusal = {};

    int64_t Of(absl::StatusCode code) const { return by_code[static_cast<size_t>(code)]; }
    int64_t All() const { return absl::c_accumulate(by_code, int64_t{0}); }
    int64_t Refused() const { return absl::c_accumulate(by_refusal, int64_t{0}); }
  };

  // `refusal`: kNone if it was not refused but failed.
  void Count(absl::StatusCode code, RequestRefusal refusal) {
    counts_.Add(IndexOf(code));
    if (refusal != RequestRefusal::kNone) counts_.Add(kStatusCodes + static_cast<size_t>(refusal));
  }

  // May lack the last few of those that others count meanwhile.
  Sums Sum() const {
    Sums sums;
    for (size_t i = 0; i < kStatusCodes; ++i) sums.by_code[i] = counts_.Sum(i);
    for (size_t i = 0; i < kRefusals; ++i) sums.by_refusal[i] = counts_.Sum(kStatusCodes + i);
    return sums;
  }

 private:
  Counters<kStatusCodes + kRefusals> counts_;
};

}  // namespace tilewire::service

#endif  // SERVICE_OBSERVE_FAILURE_COUNTS_H_
