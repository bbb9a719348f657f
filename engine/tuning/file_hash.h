// SPDX-License-Identifier: Apache-2.0
//
// Tells files apart, where no one means to deceive: a hash of 64 bits that is the same in all
// builds and on all machines. Pure function.
#ifndef ENGINE_TUNING_FILE_HASH_H_
#define ENGINE_TUNING_FILE_HASH_H_

#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"

namespace tilewire::tuning {

// h begins as the size. For each word of 8 bytes, little-endian, the last one padded with zeros:
// h = mix(h ^ word), where mix multiplies by an odd constant and folds the high half into the low.
inline uint64_t FileHash(absl::string_view bytes) {
  constexpr uint64_t kFactor = 0x9e3779b97f4a7c15;
  uint64_t hash = bytes.size();
  for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    const size_t count = bytes.size() - at < sizeof(word) ? bytes.size() - at : sizeof(word);
    memcpy(&word, bytes.data() + at, count);
    hash = (hash ^ word) * kFactor;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace tilewire::tuning

#endif  // ENGINE_TUNING_FILE_HASH_H_
