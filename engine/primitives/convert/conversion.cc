// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convert/conversion.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "engine/memory/element_types.h"
#include "engine/memory/narrow_floats.h"

namespace tilewire::convert {
namespace {

constexpr int64_t kPiece = 512;  // elements of a chain at once

// Elements that no arithmetic type of C++ stands for.
struct Bf16 {
  uint16_t bits;
};
struct Truth {
  uint8_t byte;
};

// The number in a type that has arithmetic.
template <typename T>
auto NumberOf(T element) {
  if constexpr (std::is_same_v<T, Truth>) {
    return static_cast<uint8_t>(element.byte != 0);
  } else if constexpr (std::is_same_v<T, Bf16>) {
    return WidenBf16(element.bits);
  } else if constexpr (std::is_same_v<T, _Float16>) {
    return static_cast<float>(element);
  } else {
    return element;
  }
}

// A float that rounds to bf16 as `number` does: it is cut, and its last bit set if that lost
// something.
float RoundedToOdd(double number) {
  float cut = static_cast<float>(number);
  if (!std::isfinite(cut) || static_cast<double>(cut) == number) return cut;
  if (std::abs(static_cast<double>(cut)) > std::abs(number)) cut = std::nextafter(cut, 0.0f);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(cut) | 1);
}

// Towards zero, the nearest in range; NaN becomes 0.
template <typename To, typename From>
To Truncated(From number) {
  using Limits = std::numeric_limits<To>;
  if (number != number) return 0;
  if (number <= static_cast<From>(Limits::min())) return Limits::min();
  if (number >= static_cast<From>(Limits::max())) return Limits::max();
  return static_cast<To>(number);
}

template <typename To, typename From>
To NumberAs(From number) {
  if constexpr (std::is_same_v<To, Truth>) {
    return Truth{static_cast<uint8_t>(number != 0)};
  } else if constexpr (std::is_same_v<To, Bf16>) {
    if constexpr (std::is_same_v<From, float>) return Bf16{ToBf16(number)};
    return Bf16{ToBf16(RoundedToOdd(static_cast<double>(number)))};
  } else if constexpr (std::is_same_v<To, _Float16>) {
    if constexpr (std::is_same_v<From, double>) return static_cast<_Float16>(number);
    return static_cast<_Float16>(static_cast<float>(number));
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    return Truncated<To>(number);
  } else {
    return static_cast<To>(number);
  }
}

template <typename From, typename To>
void Run(const void* src, int64_t count, void* dst) {
  const auto* from = static_cast<const From*>(src);
  auto* to = static_cast<To*>(dst);
  for (int64_t i = 0; i < count; ++i) to[i] = NumberAs<To>(NumberOf(from[i]));
}

template <typename Visit>
ConvertRun VisitType(DataType type, Visit visit) {
  switch (type) {
    case DataType::kF16:
      return visit(_Float16());
    case DataType::kBf16:
      return visit(Bf16());
    case DataType::kF32:
      return visit(float());
    case DataType::kBool:
      return visit(Truth());
    default:
      return VisitIntegerOrDouble(type, visit);
  }
}

}  // namespace

ConversionChain::ConversionChain(std::vector<DataType> types) : types_(std::move(types)) {
  for (size_t i = 0; i + 1 < types_.size(); ++i)
    steps_.push_back(ConversionOf(types_[i], types_[i + 1]));
}

void ConversionChain::Run(const std::byte* src, int64_t count, std::byte* dst) const {
  if (steps_.size() == 1) return steps_[0](src, count, dst);
  for (int64_t first = 0; first < count; first += kPiece) {
    RunPiece(src + first * SizeOf(types_.front()), std::min(kPiece, count - first),
             dst + first * SizeOf(types_.back()));
  }
}

// In turn into one of two buffers, the last step into dst.
void ConversionChain::RunPiece(const std::byte* src, int64_t count, std::byte* dst) const {
  alignas(uint64_t) std::byte between[2][kPiece * sizeof(uint64_t)];
  for (size_t i = 0; i < steps_.size(); ++i) {
    std::byte* const to = i + 1 < steps_.size() ? between[i % 2] : dst;
    steps_[i](src, count, to);
    src = to;
  }
}

std::vector<DataType> TypesOf(const ConvertDesc& desc) {
  std::vector<DataType> types = desc.via;
  types.insert(types.begin(), desc.src.data_type());
  types.push_back(desc.dst.data_type());
  return types;
}

ConvertRun ConversionOf(DataType src_type, DataType dst_type) {
  return VisitType(src_type, [dst_type](auto src) {
    return VisitType(dst_type,
                     [](auto dst) -> ConvertRun { return &Run<decltype(src), decltype(dst)>; });
  });
}

}  // namespace tilewire::convert
