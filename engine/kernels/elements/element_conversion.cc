// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/elements/element_conversion.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "engine/memory/element_types.h"
#include "engine/memory/narrow_floats.h"

namespace tilewire {
namespace {

template <typename T>
T Load(const void* base, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(base) + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void Store(T value, void* base, int64_t index) {
  std::memcpy(static_cast<char*>(base) + index * sizeof(T), &value, sizeof(T));
}

template <typename T>
T Saturate(float value) {
  if (std::isnan(value)) return 0;
  // 2^31 - 1 is not a float, so the comparison is with 2^31, from which on everything saturates.
  constexpr double kLow = std::numeric_limits<T>::min();
  constexpr double kHigh = std::numeric_limits<T>::max();
  const double rounded = std::nearbyint(static_cast<double>(value));
  if (rounded <= kLow) return std::numeric_limits<T>::min();
  if (rounded >= kHigh) return std::numeric_limits<T>::max();
  return static_cast<T>(rounded);
}

template <typename T>
T Nearest(float value) {
  if constexpr (std::is_same_v<T, double>) {
    return value;
  } else {
    return Saturate<T>(value);
  }
}

}  // namespace

float LoadElement(DataType type, const void* base, int64_t index) {
  switch (type) {
    case DataType::kF16:
      return static_cast<float>(Load<_Float16>(base, index));
    case DataType::kBf16:
      return WidenBf16(Load<uint16_t>(base, index));
    case DataType::kF32:
      return Load<float>(base, index);
    case DataType::kS32:
      return static_cast<float>(Load<int32_t>(base, index));
    case DataType::kS8:
      return Load<int8_t>(base, index);
    case DataType::kU8:
      return Load<uint8_t>(base, index);
    case DataType::kBool:
      return Load<uint8_t>(base, index) != 0;
    case DataType::kUndef:
      return 0;
    default:
      return VisitIntegerOrDouble(type, [&](auto element) {
        return static_cast<float>(Load<decltype(element)>(base, index));
      });
  }
}

void StoreElement(DataType type, float value, void* base, int64_t index) {
  switch (type) {
    case DataType::kF16:
      return Store(static_cast<_Float16>(value), base, index);
    case DataType::kBf16:
      return Store(ToBf16(value), base, index);
    case DataType::kF32:
      return Store(value, base, index);
    case DataType::kS32:
      return Store(Saturate<int32_t>(value), base, index);
    case DataType::kS8:
      return Store(Saturate<int8_t>(value), base, index);
    case DataType::kU8:
      return Store(Saturate<uint8_t>(value), base, index);
    case DataType::kBool:
      return Store(static_cast<uint8_t>(value != 0), base, index);
    case DataType::kUndef:
      return;
    default:
      VisitIntegerOrDouble(
          type, [&](auto element) { Store(Nearest<decltype(element)>(value), base, index); });
  }
}

void CopyElement(DataType type, const void* src, int64_t src_index, void* dst, int64_t dst_index) {
  const int64_t size = SizeOf(type);
  std::memcpy(static_cast<char*>(dst) + dst_index * size,
              static_cast<const char*>(src) + src_index * size, size);
}

}  // namespace tilewire
