// SPDX-License-Identifier: Apache-2.0
//
// Element types of engine tensors. The numbers up to kU8's are MKL-DNN 1.0's, and single primitives
// are offered for these alone; models have the others too.
#ifndef ENGINE_MEMORY_DATA_TYPE_H_
#define ENGINE_MEMORY_DATA_TYPE_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace tilewire {

enum class DataType : uint8_t {
  kUndef = 0,
  kF16 = 1,
  kBf16 = 2,
  kF32 = 3,
  kS32 = 4,
  kS8 = 5,
  kU8 = 6,
  kF64 = 7,
  kBool = 8,  // a byte: 0 is false, any other true
  kS16 = 9,
  kU16 = 10,
  kU32 = 11,
  kS64 = 12,
  kU64 = 13
};

// Bytes of one element; 0 for kUndef.
int64_t SizeOf(DataType type);

// u8 or s8.
inline bool IsByte(DataType type) { return type == DataType::kU8 || type == DataType::kS8; }

// An integer of any size; kBool is none.
inline bool IsIntegerType(DataType type) {
  return IsByte(type) || type == DataType::kS32 || type >= DataType::kS16;
}

// "undef", "f16", "bf16", "f32", "s32", "s8", "u8", "f64", "bool", "s16", "u16", "u32", "s64",
// "u64".
absl::string_view DataTypeName(DataType type);

}  // namespace tilewire

#endif  // ENGINE_MEMORY_DATA_TYPE_H_
