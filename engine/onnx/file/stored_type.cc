// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/file/stored_type.h"

#include <array>
#include <cstring>

#include "engine/memory/narrow_floats.h"
#include "engine/onnx/file/onnx_types.h"

namespace tilewire::reader {
namespace {

// The number that the bits of one element stand for.
std::array<float, 256> NumbersOf(ElementType type) {
  std::array<float, 256> numbers{};
  for (int bits = 0; bits < 256; ++bits) {
    const auto byte =
        static_cast<float>(type.holder() == DataType::kS8 ? static_cast<int8_t>(bits) : bits);
    numbers[bits] = type.is_small() ? SmallNumber(type.small(), bits) : byte;
  }
  return numbers;
}

// Elements of at most 8 bits.
template <typename T>
void WidenPacked(const std::array<float, 256>& numbers, int element_bits, const std::byte* from,
                 int64_t count, T* to) {
  const int per_byte = 8 / element_bits, mask = (1 << element_bits) - 1;
  for (int64_t i = 0; i < count; ++i) {
    const int byte = std::to_integer<int>(from[i / per_byte]);
    const int place = static_cast<int>(i % per_byte) * element_bits;
    to[i] = static_cast<T>(numbers[byte >> place & mask]);
  }
}

}  // namespace

std::optional<StoredType> StoredType::Of(int64_t onnx_type) {
  const std::optional<ElementType> type = ElementTypeOf(onnx_type);
  if (!type) return std::nullopt;
  return StoredType(*type, type->is_small() ? BitsOf(type->small())
                                            : 8 * static_cast<int>(SizeOf(type->holder())));
}

void StoredType::Widen(const std::byte* from, int64_t count, float* to) const {
  if (bits_ <= 8) return WidenPacked(NumbersOf(type_), bits_, from, count, to);
  if (bits_ == 32) {
    if (static_cast<const void*>(from) != to) std::memmove(to, from, count * sizeof(float));
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    uint16_t half;
    std::memcpy(&half, from + i * sizeof(half), sizeof(half));
    to[i] = WidenAs(held(), half);
  }
}

void StoredType::Widen(const std::byte* from, int64_t count, int8_t* to) const {
  const int per_byte = 8 / bits_, mask = (1 << bits_) - 1;
  for (int64_t i = 0; i < count; ++i) {
    const int byte = std::to_integer<int>(from[i / per_byte]);
    const int bits = byte >> (i % per_byte * bits_) & mask;
    const bool is_negative = held() == DataType::kS8 && bits > mask / 2;
    to[i] = static_cast<int8_t>(is_negative ? bits - mask - 1 : bits);
  }
}

}  // namespace tilewire::reader
