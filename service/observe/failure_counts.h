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

namespace tilewire::service {

class FailureCounts {
 public:
  static constexpr size_t kCodes = 17;  // of absl::StatusCode

  struct Sums {
    std::array<int64_t, kCodes> by_code = {};
    std::array<int64_t, kRefusals> by_refusal = {};

    int64_t Of(absl::StatusCode code) const { return by_code[static_cast<size_t>(code)]; }
    int64_t All() const { return absl::c_accumulate(by_code, int64_t{0}); }
    int64_t Refused() const { return absl::c_accumulate(by_refusal, int64_t{0}); }
  };

  // A code that there is not counts as kUnknown. `refusal`: kNone if it was not refused but failed.
  void Count(absl::StatusCode code, RequestRefusal refusal) {
    const auto number = static_cast<size_t>(code);
    counts_.Add(number < kCodes ? number : static_cast<size_t>(absl::StatusCode::kUnknown));
    if (refusal != RequestRefusal::kNone) counts_.Add(kCodes + static_cast<size_t>(refusal));
  }

  // May lack the last few of those that others count meanwhile.
  Sums Sum() const {
    Sums sums;
    for (size_t i = 0; i < kCodes; ++i) sums.by_code[i] = counts_.Sum(i);
    for (size_t i = 0; i < kRefusals; ++i) sums.by_refusal[i] = counts_.Sum(kCodes + i);
    return sums;
  }

 private:
  Counters<kCodes + kRefusals> counts_;
};

}  // namespace tilewire::service

#endif  // SERVICE_OBSERVE_FAILURE_COUNTS_H_
