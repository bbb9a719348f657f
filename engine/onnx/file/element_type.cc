// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/file/element_type.h"

#include "engine/onnx/file/onnx_types.h"

namespace tilewire::reader {

std::optional<ElementType> ElementTypeOf(int64_t onnx_type) {
  static constexpr struct {
    onnx::TensorProto::DataType onnx;
    SmallType type;
  } kTypes[] = {{onnx::TensorProto::UINT2, SmallType::kU2},
                {onnx::TensorProto::INT2, SmallType::kS2},
                {onnx::TensorProto::UINT4, SmallType::kU4},
                {onnx::TensorProto::INT4, SmallType::kS4},
                {onnx::TensorProto::FLOAT4E2M1, SmallType::kF4E2M1},
                {onnx::TensorProto::FLOAT8E4M3FN, SmallType::kF8E4M3Fn},
                {onnx::TensorProto::FLOAT8E4M3FNUZ, SmallType::kF8E4M3Fnuz},
                {onnx::TensorProto::FLOAT8E5M2, SmallType::kF8E5M2},
                {onnx::TensorProto::FLOAT8E5M2FNUZ, SmallType::kF8E5M2Fnuz},
                {onnx::TensorProto::FLOAT8E8M0, SmallType::kF8E8M0}};
  if (const std::optional<DataType> type = TypeOfElements(onnx_type)) return ElementType(*type);
  for (const auto& one : kTypes) {
    if (one.onnx == onnx_type) return ElementType(one.type);
  }
  return std::nullopt;
}

}  // namespace tilewire::reader
