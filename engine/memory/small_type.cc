// SPDX-License-Identifier: Apache-2.0
#include "engine/memory/small_type.h"

#include <cmath>
#include <limits>

#include "engine/base/check.h"

namespace tilewire {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct SmallTypeRow {
  absl::string_view name;
  DataType holder;
  int bits, exponent_bits, fraction_bits, bias;  // integers have bits alone
  SmallFloat rounding;
};
constexpr SmallTypeRow kRows[] = {
    {"none", DataType::kUndef, 0, 0, 0, 0, {}},
    {"u2", DataType::kU8, 2, 0, 0, 0, {}},
    {"s2", DataType::kS8, 2, 0, 0, 0, {}},
    {"u4", DataType::kU8, 4, 0, 0, 0, {}},
    {"s4", DataType::kS8, 4, 0, 0, 0, {}},
    {"f4e2m1", DataType::kF32, 4, 2, 1, 1, {2, 1, 6, 6, true}},
    {"f8e4m3fn", DataType::kF32, 8, 4, 3, 7, {4, 0x1p-6f, 448, kNan, true}},
    {"f8e4m3fnuz", DataType::kF32, 8, 4, 3, 8, {4, 0x1p-7f, 240, kNan, false}},
    {"f8e5m2", DataType::kF32, 8, 5, 2, 15, {3, 0x1p-14f, 57344, kInfinity, true}},
    {"f8e5m2fnuz", DataType::kF32, 8, 5, 2, 16, {3, 0x1p-15f, 57344, kNan, false}},
    {"f8e8m0", DataType::kF32, 8, 8, 0, 127, {}}};

const SmallTypeRow& RowOf(SmallType type) {
  TILEWIRE_CHECK(type != SmallType::kNone, "an ordinary type is asked for its bits");
  return kRows[static_cast<int>(type)];
}

// Whether the bits of a real number stand for none; `magnitude` is all but the sign.
bool IsNan(SmallType type, int magnitude, bool negative) {
  switch (type) {
    case SmallType::kF8E4M3Fn:
      return magnitude == 0x7F;
    case SmallType::kF8E5M2:
      return magnitude > 0x7C;
    case SmallType::kF8E4M3Fnuz:
    case SmallType::kF8E5M2Fnuz:
      return negative && magnitude == 0;
    default:
      return false;
  }
}

float RealNumber(SmallType type, int bits) {
  const SmallTypeRow& row = RowOf(type);
  const int magnitude = bits & ((1 << (row.bits - 1)) - 1);
  const bool negative = magnitude != bits;
  if (IsNan(type, magnitude, negative)) return kNan;
  const int fraction_range = 1 << row.fraction_bits;
  const int exponent = magnitude >> row.fraction_bits, fraction = magnitude % fraction_range;
  float number =
      std::ldexp(static_cast<float>(exponent == 0 ? fraction : fraction + fraction_range),
                 (exponent == 0 ? 1 : exponent) - row.bias - row.fraction_bits);
  if (type == SmallType::kF8E5M2 && magnitude == 0x7C) number = kInfinity;
  return negative ? -number : number;
}

}  // namespace

DataType HolderOf(SmallType type) { return RowOf(type).holder; }
int BitsOf(SmallType type) { return RowOf(type).bits; }
absl::string_view SmallTypeName(SmallType type) { return RowOf(type).name; }
SmallFloat SmallFloatOf(SmallType type) { return RowOf(type).rounding; }

float LeastOf(SmallType type) {
  return RowOf(type).holder == DataType::kU8 ? 0 : -std::ldexp(1.0f, BitsOf(type) - 1);
}
float LargestOf(SmallType type) { return std::ldexp(1.0f, BitsOf(type)) - 1 + LeastOf(type); }

int64_t LowestBits(SmallType type, int64_t number) {
  const int64_t range = int64_t{1} << BitsOf(type), lowest = number & (range - 1);
  const bool is_negative = HolderOf(type) == DataType::kS8 && lowest >= range / 2;
  return is_negative ? lowest - range : lowest;
}

float SmallNumber(SmallType type, int bits) {
  if (IsSmallInteger(type)) return static_cast<float>(LowestBits(type, bits));
  bits &= (1 << BitsOf(type)) - 1;
  if (type != SmallType::kF8E8M0) return RealNumber(type, bits);
  return bits == 255 ? kNan : std::ldexp(1.0f, bits - 127);
}

float NearestSmall(SmallType type, float number, bool saturates) {
  const SmallFloat& to = RowOf(type).rounding;
  if (std::isnan(number)) return type == SmallType::kF4E2M1 ? to.largest : number;
  const float size = std::fmin(std::fabs(number), 2 * to.largest);
  const int exponent = std::ilogb(std::fmax(size, to.least_normal));
  const float step = std::ldexp(1.0f, exponent - to.significant_bits + 1);
  float nearest = std::nearbyint(size / step) * step;
  if (nearest > to.largest) nearest = saturates ? to.largest : to.beyond;
  if (nearest == 0 && !to.has_minus_zero) return 0;
  return std::copysign(nearest, number);
}

}  // namespace tilewire
