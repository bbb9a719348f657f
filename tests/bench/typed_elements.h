// SPDX-License-Identifier: Apache-2.0
//
// Elements of any type from numbers, and back. Pure functions.
#ifndef TESTS_BENCH_TYPED_ELEMENTS_H_
#define TESTS_BENCH_TYPED_ELEMENTS_H_

#include <cstring>
#include <string>
#include <vector>

#include "engine/memory/data_type.h"
#include "engine/memory/element_types.h"

namespace tilewire::bench {

// f16 is not converted: its elements count as 0.
inline std::vector<float> FloatsOf(DataType type, const void* elements, int64_t count) {
  std::vector<float> floats(count);
  if (type == DataType::kF32) {
    if (count > 0) std::memcpy(floats.data(), elements, count * sizeof(float));
  } else if (type == DataType::kBool) {
    for (int64_t i = 0; i < count; ++i)
      floats[i] = static_cast<const uint8_t*>(elements)[i] != 0 ? 1.0f : 0.0f;
  } else if (type != DataType::kF16 && type != DataType::kBf16) {
    VisitIntegerOrDouble(type, [&]<typename T>(T) {
      for (int64_t i = 0; i < count; ++i)
        floats[i] = static_cast<float>(static_cast<const T*>(elements)[i]);
    });
  }
  return floats;
}

// Numbers of [-1, 1); integers are as large as 100 of them, and truth values tell their sign.
inline std::string ElementsOf(DataType type, const std::vector<float>& numbers) {
  std::string bytes(numbers.size() * SizeOf(type), '\0');
  if (type == DataType::kF32) {
    std::memcpy(bytes.data(), numbers.data(), bytes.size());
  } else if (type == DataType::kBool) {
    for (size_t i = 0; i < numbers.size(); ++i) bytes[i] = numbers[i] < 0 ? 1 : 0;
  } else if (type != DataType::kF16 && type != DataType::kBf16) {
    VisitIntegerOrDouble(type, [&]<typename T>(T) {
      for (size_t i = 0; i < numbers.size(); ++i) {
        const T element = static_cast<T>(static_cast<int64_t>(numbers[i] * 100));
        std::memcpy(&bytes[i * sizeof(T)], &element, sizeof(T));
      }
    });
  }
  return bytes;
}

}  // namespace tilewire::bench

#endif  // TESTS_BENCH_TYPED_ELEMENTS_H_
