// SPDX-License-Identifier: Apache-2.0
#include "client/latencies.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tilewire::client {

void Latencies::Merge(const Latencies& other) {
  values_.insert(values_.end(), other.values_.begin(), other.values_.end());
}

absl::Duration Latencies::Percentile(double percent) const {
  if (values_.empty()) return absl::ZeroDuration();
  const double rank = std::ceil(percent / 100 * values_.size());
  const size_t index = std::clamp<double>(rank, 1, values_.size()) - 1;
  std::vector<absl::Duration> sorted = values_;
  std::nth_element(sorted.begin(), sorted.begin() + index, sorted.end());
  return sorted[index];
}

std::string Latencies::ToString() const {
  return absl::StrCat("p50 ", FormatMs(Percentile(50)), ", p90 ", FormatMs(Percentile(90)),
                      ", p99 ", FormatMs(Percentile(99)), ", max ", FormatMs(Percentile(100)));
}

std::string FormatMs(absl::Duration duration) {
  return absl::StrFormat("%.3g ms", absl::ToDoubleMilliseconds(duration));
}

}  // namespace tilewire::client
