// SPDX-License-Identifier: Apache-2.0
//
// The C++ types that hold elements of a DataType, for loops that are compiled once per type. Pure;
// thread-safe.
#ifndef ENGINE_MEMORY_ELEMENT_TYPES_H_
#define ENGINE_MEMORY_ELEMENT_TYPES_H_

#include <cstdint>

#include "engine/memory/data_type.h"

namespace tilewire {

// Calls visit(T()), where T holds elements of `type`: an integer type, or else f64.
template <typename Visit>
auto VisitIntegerOrDouble(DataType type, Visit visit) {
  switch (type) {
    case DataType::kU8:
      return visit(uint8_t());
    case DataType::kS8:
      return visit(int8_t());
    case DataType::kU16:
      return visit(uint16_t());
    case DataType::kS16:
      return visit(int16_t());
    case DataType::kU32:
      return visit(uint32_t());
    case DataType::kS32:
      return visit(int32_t());
    case DataType::kU64:
      return visit(uint64_t());
    case DataType::kS64:
      return visit(int64_t());
    default:
      return visit(double());
  }
}

// Calls visit(T()), where the unsigned integer T has the size of elements of `type`, for loops that
// only move them.
template <typename Visit>
auto VisitBytes(DataType type, Visit visit) {
  switch (SizeOf(type)) {
    case 1:
      return visit(uint8_t());
    case 2:
      return visit(uint16_t());
    case 8:
      return visit(uint64_t());
    default:
      return visit(uint32_t());
  }
}

}  // namespace tilewire

#endif  // ENGINE_MEMORY_ELEMENT_TYPES_H_
