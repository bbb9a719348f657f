// SPDX-License-Identifier: Apache-2.0
//
// ONNX's element types: by name, and the types that the engine holds them in.
#ifndef ENGINE_ONNX_FILE_ONNX_TYPES_H_
#define ENGINE_ONNX_FILE_ONNX_TYPES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/memory/data_type.h"
#include "protos/onnx_subset.pb.h"

namespace tilewire::reader {

// "UINT8"; the number of a type that ONNX added later.
inline std::string ElementTypeText(int64_t type) {
  const int number = type < 0 || type > 1000 ? -1 : static_cast<int>(type);
  return onnx::TensorProto::DataType_IsValid(number)
             ? onnx::TensorProto::DataType_Name(static_cast<onnx::TensorProto::DataType>(number))
             : absl::StrCat("number ", type);
}

// nullopt for strings, complex numbers and types of less than 8 bits.
inline std::optional<DataType> TypeOfElements(int64_t type) {
  static constexpr struct {
    onnx::TensorProto::DataType onnx;
    DataType type;
  } kTypes[] = {
      {onnx::TensorProto::FLOAT, DataType::kF32},    {onnx::TensorProto::UINT8, DataType::kU8},
      {onnx::TensorProto::INT8, DataType::kS8},      {onnx::TensorProto::UINT16, DataType::kU16},
      {onnx::TensorProto::INT16, DataType::kS16},    {onnx::TensorProto::INT32, DataType::kS32},
      {onnx::TensorProto::INT64, DataType::kS64},    {onnx::TensorProto::BOOL, DataType::kBool},
      {onnx::TensorProto::FLOAT16, DataType::kF16},  {onnx::TensorProto::DOUBLE, DataType::kF64},
      {onnx::TensorProto::UINT32, DataType::kU32},   {onnx::TensorProto::UINT64, DataType::kU64},
      {onnx::TensorProto::BFLOAT16, DataType::kBf16}};
  for (const auto& one : kTypes) {
    if (one.onnx == type) return one.type;
  }
  return std::nullopt;
}

// Whether ONNX counts in it: constants of the type are held as integers.
inline bool IsIntegerOrBool(DataType type) {
  return IsIntegerType(type) || type == DataType::kBool;
}

// A floating-point type that is computed in f32: f32, f16, bf16.
inline bool IsComputedInF32(DataType type) {
  return type == DataType::kF32 || type == DataType::kF16 || type == DataType::kBf16;
}

// kU8 or kS8; kS32 for all types that are not integers of 8 bits.
inline DataType EightBits(int64_t type) {
  if (type == onnx::TensorProto::UINT8) return DataType::kU8;
  return type == onnx::TensorProto::INT8 ? DataType::kS8 : DataType::kS32;
}

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_FILE_ONNX_TYPES_H_
