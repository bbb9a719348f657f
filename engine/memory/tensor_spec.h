// SPDX-License-Identifier: Apache-2.0
//
// The name, element type and shape of a model's input or output. A value type.
#ifndef ENGINE_MEMORY_TENSOR_SPEC_H_
#define ENGINE_MEMORY_TENSOR_SPEC_H_

#include <string>

#include "engine/memory/data_type.h"
#include "engine/memory/dims.h"

namespace tilewire {

struct TensorSpec {
  std::string name;
  DataType type = DataType::kF32;
  Dims dims;  // in logical order [N, C, spatial...]; -1 for a dimension that may vary
};

}  // namespace tilewire

#endif  // ENGINE_MEMORY_TENSOR_SPEC_H_
