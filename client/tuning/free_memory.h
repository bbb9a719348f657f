// SPDX-License-Identifier: Apache-2.0
//
// Whether examples that a tuner holds fit the memory that is there. Thread-safe.
#ifndef CLIENT_TUNING_FREE_MEMORY_H_
#define CLIENT_TUNING_FREE_MEMORY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace tilewire::client {

// Bytes that this process can still take: the least of what the machine has (MemAvailable) and of
// what its control groups leave of their memory.max, beside the files that they cache. The files of
// Linux are read below `root`; those that are not there limit nothing.
int64_t FreeMemory(const std::string& root);

// kResourceExhausted  `count` examples of `bytes` each are more than `free`; the message has
//                     `source` and both amounts
absl::Status CheckMemory(const std::string& source, int64_t count, int64_t bytes, int64_t free);

}  // namespace tilewire::client

#endif  // CLIENT_TUNING_FREE_MEMORY_H_
