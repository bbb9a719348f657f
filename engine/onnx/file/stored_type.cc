// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/file/stored_type.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/memory/narrow_floats.h"
#include "engine/onnx/file/onnx_types.h"

namespace tilewire::reader {
namespace {

using onnx::TensorProto;

// Real numbers of 4 and 8 bits: a sign, an exponent, a fraction.
struct SmallFloat {
  enum class Special {
    kNone,
    kIeee,       // the largest exponent: infinity, or NaN where there is a fraction
    kNanOfOnes,  // all bits but the sign
    kNanForMinusZero
  };
  int onnx_type, exponent_bits, fraction_bits, bias;
  Special special;
};
constexpr SmallFloat kSmallFloats[] = {
    {TensorProto::FLOAT4E2M1, 2, 1, 1, SmallFloat::Special::kNone},
    {TensorProto::FLOAT8E4M3FN, 4, 3, 7, SmallFloat::Special::kNanOfOnes},
    {TensorProto::FLOAT8E4M3FNUZ, 4, 3, 8, SmallFloat::Special::kNanForMinusZero},
    {TensorProto::FLOAT8E5M2, 5, 2, 15, SmallFloat::Special::kIeee},
    {TensorProto::FLOAT8E5M2FNUZ, 5, 2, 16, SmallFloat::Special::kNanForMinusZero}};

float NumberOf(const SmallFloat& type, int bits) {
  const int fraction_range = 1 << type.fraction_bits, exponent_range = 1 << type.exponent_bits;
  const int fraction = bits % fraction_range;
  const int exponent = bits / fraction_range % exponent_range;
  const bool negative = bits >= fraction_range * exponent_range;
  const bool all_ones = fraction == fraction_range - 1 && exponent == exponent_range - 1;
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  using Special = SmallFloat::Special;
  if (type.special == Special::kNanOfOnes && all_ones) return kNan;
  if (type.special == Special::kNanForMinusZero && negative && fraction + exponent == 0)
    return kNan;
  float number =
      std::ldexp(static_cast<float>(exponent == 0 ? fraction : fraction + fraction_range),
                 (exponent == 0 ? 1 : exponent) - type.bias - type.fraction_bits);
  if (type.special == Special::kIeee && exponent == exponent_range - 1)
    number = fraction == 0 ? std::numeric_limits<float>::infinity() : kNan;
  return negative ? -number : number;
}

// A power of two; 255 stands for NaN.
float PowerOf(int bits) {
  return bits == 255 ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, bits - 127);
}

// The number that the bits of one element stand for.
std::array<float, 256> NumbersOf(int onnx_type, DataType held, int element_bits) {
  std::array<float, 256> numbers{};
  const int count = 1 << element_bits;
  for (int bits = 0; bits < count; ++bits) {
    const bool is_negative = held == DataType::kS8 && bits >= count / 2;
    numbers[bits] = static_cast<float>(is_negative ? bits - count : bits);
    if (onnx_type == TensorProto::FLOAT8E8M0) numbers[bits] = PowerOf(bits);
    for (const SmallFloat& type : kSmallFloats) {
      if (type.onnx_type == onnx_type) numbers[bits] = NumberOf(type, bits);
    }
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
  if (const std::optional<DataType> held = TypeOfElements(onnx_type))
    return StoredType(static_cast<int>(onnx_type), *held, 8 * static_cast<int>(SizeOf(*held)));
  switch (onnx_type) {
    case TensorProto::UINT4:
      return StoredType(TensorProto::UINT4, DataType::kU8, 4);
    case TensorProto::INT4:
      return StoredType(TensorProto::INT4, DataType::kS8, 4);
    case TensorProto::UINT2:
      return StoredType(TensorProto::UINT2, DataType::kU8, 2);
    case TensorProto::INT2:
      return StoredType(TensorProto::INT2, DataType::kS8, 2);
    case TensorProto::FLOAT4E2M1:
      return StoredType(TensorProto::FLOAT4E2M1, DataType::kF32, 4);
    case TensorProto::FLOAT8E4M3FN:
    case TensorProto::FLOAT8E4M3FNUZ:
    case TensorProto::FLOAT8E5M2:
    case TensorProto::FLOAT8E5M2FNUZ:
    case TensorProto::FLOAT8E8M0:
      return StoredType(static_cast<int>(onnx_type), DataType::kF32, 8);
    default:
      return std::nullopt;
  }
}

void StoredType::Widen(const std::byte* from, int64_t count, float* to) const {
  if (bits_ <= 8) return WidenPacked(NumbersOf(onnx_type_, held_, bits_), bits_, from, count, to);
  if (bits_ == 32) {
    if (static_cast<const void*>(from) != to) std::memmove(to, from, count * sizeof(float));
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    uint16_t half;
    std::memcpy(&half, from + i * sizeof(half), sizeof(half));
    to[i] = WidenAs(held_, half);
  }
}

void StoredType::Widen(const std::byte* from, int64_t count, int8_t* to) const {
  const int per_byte = 8 / bits_, mask = (1 << bits_) - 1;
  for (int64_t i = 0; i < count; ++i) {
    const int byte = std::to_integer<int>(from[i / per_byte]);
    const int bits = byte >> (i % per_byte * bits_) & mask;
    const bool is_negative = held_ == DataType::kS8 && bits > mask / 2;
    to[i] = static_cast<int8_t>(is_negative ? bits - mask - 1 : bits);
  }
}

}  // namespace tilewire::reader
