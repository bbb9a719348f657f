// SPDX-License-Identifier: Apache-2.0
//
// ONNX's element types by name, and which of them the engine holds as bytes.
#ifndef ENGINE_GRAPH_ONNX_TYPES_H_
#define ENGINE_GRAPH_ONNX_TYPES_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/memory/data_type.h"
#include "protos/onnx_subset.pb.h"

namespace tilewire::graph {

// "UINT8"; the number of a type that ONNX added later.
inline std::string ElementTypeText(int64_t type) {
  const int number = type < 0 || type > 1000 ? -1 : static_cast<int>(type);
  return onnx::TensorProto::DataType_IsValid(number)
             ? onnx::TensorProto::DataType_Name(static_cast<onnx::TensorProto::DataType>(number))
             : absl::StrCat("number ", type);
}

// kU8 or kS8; kS32 for all types that are not integers of 8 bits.
inline DataType EightBits(int64_t type) {
  if (type == onnx::TensorProto::UINT8) return DataType::kU8;
  return type == onnx::TensorProto::INT8 ? DataType::kS8 : DataType::kS32;
}

}  // namespace tilewire::graph

#endif  // ENGINE_GRAPH_ONNX_TYPES_H_
