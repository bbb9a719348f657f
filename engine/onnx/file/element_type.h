// SPDX-License-Identifier: Apache-2.0
//
// The type that a tensor of the model has: one of the engine's, or a small one, whose numbers a
// type of the engine holds. Where only the holder matters it is that. A value type.
#ifndef ENGINE_ONNX_FILE_ELEMENT_TYPE_H_
#define ENGINE_ONNX_FILE_ELEMENT_TYPE_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "engine/memory/data_type.h"
#include "engine/memory/small_type.h"

namespace tilewire::reader {

class ElementType {
 public:
  constexpr ElementType() = default;  // f32
  constexpr ElementType(DataType type) : holder_(type) {}
  explicit ElementType(SmallType small) : holder_(HolderOf(small)), small_(small) {}

  constexpr operator DataType() const { return holder_; }
  constexpr DataType holder() const { return holder_; }
  constexpr SmallType small() const { return small_; }
  constexpr bool is_small() const { return small_ != SmallType::kNone; }
  constexpr bool Is(ElementType other) const {
    return holder_ == other.holder_ && small_ == other.small_;
  }
  absl::string_view name() const {
    return is_small() ? SmallTypeName(small_) : DataTypeName(holder_);
  }

 private:
  DataType holder_ = DataType::kF32;
  SmallType small_ = SmallType::kNone;
};

// By ONNX's number. nullopt for strings and complex numbers.
std::optional<ElementType> ElementTypeOf(int64_t onnx_type);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_FILE_ELEMENT_TYPE_H_
