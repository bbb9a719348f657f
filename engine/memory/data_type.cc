// SPDX-License-Identifier: Apache-2.0
#include "engine/memory/data_type.h"

namespace tilewire {
namespace {

struct Row {
  DataType type;
  absl::string_view name;
  int64_t size;
};

constexpr Row kTypeRows[] = {
    {DataType::kUndef, "undef", 0}, {DataType::kF16, "f16", 2}, {DataType::kBf16, "bf16", 2},
    {DataType::kF32, "f32", 4},     {DataType::kS32, "s32", 4}, {DataType::kS8, "s8", 1},
    {DataType::kU8, "u8", 1},       {DataType::kF64, "f64", 8}, {DataType::kBool, "bool", 1},
    {DataType::kS16, "s16", 2},     {DataType::kU16, "u16", 2}, {DataType::kU32, "u32", 4},
    {DataType::kS64, "s64", 8},     {DataType::kU64, "u64", 8},
};

// A number outside the enumeration is read as undef.
const Row& RowOf(DataType type) {
  const auto index = static_cast<size_t>(type);
  return kTypeRows[index < std::size(kTypeRows) ? index : 0];
}

}  // namespace

int64_t SizeOf(DataType type) { return RowOf(type).size; }

absl::string_view DataTypeName(DataType type) { return RowOf(type).name; }

}  // namespace tilewire
