// SPDX-License-Identifier: Apache-2.0
//
// Why a request was refused rather than computed, for those that count. Constants.
#ifndef SERVICE_OBSERVE_REFUSAL_H_
#define SERVICE_OBSERVE_REFUSAL_H_

#include <cstddef>
#include <cstdint>

namespace tilewire::service {

enum class RequestRefusal : uint8_t {
  kQueue,       // as many wait as may
  kModelQueue,  // as many of its model
  kTooLate,     // it cannot be, or was not, answered in its time
  kMemory,      // others hold the memory that it takes
  kTooLarge,    // it takes more than any request may
  kNotReady,    // its model does not serve now
  kRight,       // its caller lacks the right
  kNone,        // it was not refused
};
inline constexpr size_t kRefusals = static_cast<size_t>(RequestRefusal::kNone);
inline constexpr const char* kRefusalNames[kRefusals] = {
    "queue", "model_queue", "too_late", "memory", "too_large", "not_ready", "right"};

}  // namespace tilewire::service

#endif  // SERVICE_OBSERVE_REFUSAL_H_
