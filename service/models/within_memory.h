// SPDX-License-Identifier: Apache-2.0
#ifndef SERVICE_MODELS_WITHIN_MEMORY_H_
#define SERVICE_MODELS_WITHIN_MEMORY_H_

#include <new>

#include "absl/status/status.h"

namespace tilewire::service {

// Returns what `body` does, a Status or StatusOr, or that the system has no memory for it.
template <typename Body>
auto WithinMemory(Body body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("the system has no memory for it");
  }
}

}  // namespace tilewire::service

#endif  // SERVICE_MODELS_WITHIN_MEMORY_H_
