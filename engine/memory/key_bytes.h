// SPDX-License-Identifier: Apache-2.0
//
// Bytes for the keys of descriptors and attributes. Pure functions; thread-safe.
#ifndef ENGINE_MEMORY_KEY_BYTES_H_
#define ENGINE_MEMORY_KEY_BYTES_H_

#include <string>

#include "engine/memory/dims.h"

namespace tilewire {

// The bytes of a plain value, for keys.
template <typename T>
void AppendBytes(const T& value, std::string* key) {
  key->append(reinterpret_cast<const char*>(&value), sizeof(value));
}
inline void AppendBytes(const Dims& dims, std::string* key) {
  AppendBytes(static_cast<int64_t>(dims.size()), key);
  for (int64_t value : dims) AppendBytes(value, key);
}

}  // namespace tilewire

#endif  // ENGINE_MEMORY_KEY_BYTES_H_
