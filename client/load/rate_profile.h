// SPDX-License-Identifier: Apache-2.0
//
// How the rate of an open loop changes over time: stages one after the other, each of which holds
// its rate or goes from one rate to another in a straight line. The final rate of the last stage
// holds from then on.
#ifndef CLIENT_LOAD_RATE_PROFILE_H_
#define CLIENT_LOAD_RATE_PROFILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tilewire::client {

struct RateStage {
  double from = 0, to = 0;  // requests per second, above 0
  absl::Duration length;
};

class RateProfile {
 public:
  RateProfile() = default;  // no requests at all
  explicit RateProfile(std::vector<RateStage> stages) : stages_(std::move(stages)) {}
  explicit RateProfile(double rate) : RateProfile({{rate, rate, absl::ZeroDuration()}}) {}

  // "100:10s,100-400:30s": 10 s at 100 requests/s, then 30 s from there to 400/s.
  //   kInvalidArgument  not of this form; a rate or a length is not above 0
  static absl::StatusOr<RateProfile> Parse(absl::string_view text);

  bool empty() const { return stages_.empty(); }
  bool is_constant() const;
  const std::vector<RateStage>& stages() const { return stages_; }
  absl::Duration length() const;
  double RateAt(absl::Duration time) const;
  // The same, after `length` at the rate with which it begins.
  RateProfile After(absl::Duration length) const;
  // The time until which `count` requests are expected: the inverse of the rate's integral.
  absl::Duration TimeOf(double count) const;

 private:
  std::vector<RateStage> stages_;
};

}  // namespace tilewire::client

#endif  // CLIENT_LOAD_RATE_PROFILE_H_
