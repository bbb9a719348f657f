// SPDX-License-Identifier: Apache-2.0
//
// How a file stores numbers: packed, where they have fewer than 8 bits, the first in the lowest
// bits of a byte. Integers of 2 and 4 bits are read as those of 8, real numbers of 4 and 8 bits as
// f32, which holds them exactly. A value type. Source: ONNX, TensorProto.
#ifndef ENGINE_ONNX_FILE_STORED_TYPE_H_
#define ENGINE_ONNX_FILE_STORED_TYPE_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "engine/onnx/file/element_type.h"

namespace tilewire::reader {

class StoredType {
 public:
  // By ONNX's number. nullopt: numbers of that type are not read.
  static std::optional<StoredType> Of(int64_t onnx_type);

  ElementType type() const { return type_; }
  // The type that they are read as.
  DataType held() const { return type_.holder(); }
  int bits() const { return bits_; }
  // Whether typed contents are the elements' bits: of real numbers of at most 16 bits, and of
  // integers of fewer than 8.
  bool is_bits() const {
    return bits_ < (IsIntegerType(held()) || held() == DataType::kBool ? 8 : 32);
  }
  // The bytes of elements one after the other; `count` elements of 8 bytes do not overflow.
  int64_t Bytes(int64_t count) const { return (count * bits_ + 7) / 8; }

  // Widens real numbers of at most 32 bits and integers of at most 8. `from` may be the end of the
  // place that `to` has.
  void Widen(const std::byte* from, int64_t count, float* to) const;
  // The same of integers alone.
  void Widen(const std::byte* from, int64_t count, int8_t* to) const;

 private:
  StoredType(ElementType type, int bits) : type_(type), bits_(bits) {}

  ElementType type_;
  int bits_;
};

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_FILE_STORED_TYPE_H_
