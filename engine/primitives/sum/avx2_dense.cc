// SPDX-License-Identifier: Apache-2.0
//
// Any type, 8 lanes a vector.
#include "engine/primitives/sum/dense.h"
#include "engine/primitives/sum/implementations.h"

namespace tilewire::sum {

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2Dense(const SumDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name) {
  return CreateDense(desc, attributes, name, /*lanes=*/8);
}

}  // namespace tilewire::sum
