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
  Dims dims;              // in logical order [N, C, spatial...]; -1 for a dimension that may vary
  bool any_rank = false;  // the rank may vary too; `dims` is empty
  bool decides_shapes = false;  // of an input: the model's shapes depend on its elements

  // Whether a tensor of these dims may be the input or output.
  bool Allows(const Dims& given) const {
    if (any_rank ? given.size() > kMaxRank : given.size() != dims.size()) return false;
    for (size_t d = 0; d < given.size(); ++d) {
      const int64_t declared = any_rank ? -1 : dims[d];
      if (given[d] < 0 || (declared >= 0 && declared != given[d])) return false;
    }
    return true;
  }
};

// "[-1,3,224,224]", or "any shape".
inline std::string ShapeText(const TensorSpec& spec) {
  return spec.any_rank ? "any shape" : DimsToString(spec.dims);
}

}  // namespace tilewire

#endif  // ENGINE_MEMORY_TENSOR_SPEC_H_
