// SPDX-License-Identifier: Apache-2.0
//
// The codes of absl::Status as indices of counts. Pure function; thread-safe.
#ifndef SERVICE_OBSERVE_STATUS_CODES_H_
#define SERVICE_OBSERVE_STATUS_CODES_H_

#include <cstddef>

#include "absl/status/status.h"

namespace tilewire::service {

inline constexpr size_t kStatusCodes = 17;

// A code that there is not counts as kUnknown.
inline size_t IndexOf(absl::StatusCode code) {
  const auto index = static_cast<size_t>(code);
  return index < kStatusCodes ? index : static_cast<size_t>(absl::StatusCode::kUnknown);
}

}  // namespace tilewire::service

#endif  // SERVICE_OBSERVE_STATUS_CODES_H_
