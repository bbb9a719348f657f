// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/networks/elements.h"

#include <cstring>

#include "engine/memory/element_types.h"
#include "engine/memory/narrow_floats.h"

namespace tilewire::testing {
namespace {

bool IsNarrowFloat(DataType type) { return type == DataType::kF16 || type == DataType::kBf16; }

uint16_t Narrowed(DataType type, double element) {
  const auto number = static_cast<float>(element);
  if (type == DataType::kBf16) return ToBf16(number);
  const auto half = static_cast<_Float16>(number);
  uint16_t bits;
  std::memcpy(&bits, &half, sizeof bits);
  return bits;
}

// Calls visit(T(), convert), where T is stored for elements of the type.
template <typename Visit>
void VisitStored(DataType type, Visit visit) {
  if (type == DataType::kF32) return visit(float());
  if (type == DataType::kBool) return visit(uint8_t());
  if (IsNarrowFloat(type)) return visit(uint16_t());
  VisitIntegerOrDouble(type, visit);
}

}  // namespace

Elements RandomElements(Random& random, DataType type, int64_t count) {
  Elements elements;
  for (int64_t i = 0; i < count; ++i) {
    if (type == DataType::kBool) {
      elements.push_back(static_cast<double>(random.Integer(0, 1)));
    } else if (IsByte(type)) {
      const int64_t low = type == DataType::kS8 ? -128 : 0;
      elements.push_back(static_cast<double>(random.Integer(low, low + 255)));
    } else if (IsIntegerType(type)) {
      elements.push_back(static_cast<double>(random.Integer(0, 4)));
    } else {
      elements.push_back(static_cast<double>(random.Integer(-16, 16)) / 8);
    }
  }
  return elements;
}

std::string BytesOf(DataType type, const Elements& elements) {
  std::string bytes(elements.size() * SizeOf(type), '\0');
  char* to = bytes.data();
  VisitStored(type, [&](auto stored) {
    using T = decltype(stored);
    for (const double element : elements) {
      const T one =
          IsNarrowFloat(type) ? static_cast<T>(Narrowed(type, element)) : static_cast<T>(element);
      std::memcpy(to, &one, sizeof one);
      to += sizeof one;
    }
  });
  return bytes;
}

Elements ElementsOf(DataType type, absl::string_view bytes) {
  Elements elements;
  VisitStored(type, [&](auto stored) {
    using T = decltype(stored);
    for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
      T one;
      std::memcpy(&one, bytes.data() + at, sizeof one);
      elements.push_back(IsNarrowFloat(type) ? WidenAs(type, static_cast<uint16_t>(one))
                                             : static_cast<double>(one));
    }
  });
  return elements;
}

}  // namespace tilewire::testing
