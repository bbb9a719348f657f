// SPDX-License-Identifier: Apache-2.0
//
// Any type, 16 lanes a vector.
#include "engine/primitives/sum/dense.h"
#include "engine/primitives/sum/implementations.h"

namespace tilewire::sum {

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512Dense(const SumDesc& desc,
                                                             const Attributes& attributes,
                                                             absl::string_view name) {
  return CreateDense(desc, attributes, name, /*lanes=*/16);
}

}  // namespace tilewire::sum
