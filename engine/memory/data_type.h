// SPDX-License-Identifier: Apache-2.0
//
// Element types of engine tensors. The numbers are MKL-DNN 1.0's.
#ifndef ENGINE_MEMORY_DATA_TYPE_H_
#define ENGINE_MEMORY_DATA_TYPE_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace tilewire {

enum class DataType : uint8_t {
  kUndef = 0,
  kF16 = 1,
  kBf16 = 2,
  kF32 = 3,
  kS32 = 4,
  kS8 = 5,
  kU8 = 6
};

// Bytes of one element; 0 for kUndef.
int64_t SizeOf(DataType type);

// u8 or s8.
inline bool IsByte(DataType type) { return type == DataType::kU8 || type == DataType::kS8; }

// "undef", "f16", "bf16", "f32", "s32", "s8", "u8".
absl::string_view DataTypeName(DataType type);
std::optional<DataType> ParseDataType(absl::string_view name);

}  // namespace tilewire

#endif  // ENGINE_MEMORY_DATA_TYPE_H_
