// SPDX-License-Identifier: Apache-2.0
#ifndef SERVICE_GRANTED_MEMORY_H_
#define SERVICE_GRANTED_MEMORY_H_

#include <cstdint>

namespace tilewire::service {

// The bytes that this process may use: the machine's, or its control group's or its own limit's
// (RLIMIT_AS) if those are fewer.
int64_t GrantedMemory();

}  // namespace tilewire::service

#endif  // SERVICE_GRANTED_MEMORY_H_
