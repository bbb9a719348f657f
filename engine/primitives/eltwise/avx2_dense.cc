// SPDX-License-Identifier: Apache-2.0
//
// Any type, 8 lanes a vector.
#include "engine/primitives/eltwise/dense.h"
#include "engine/primitives/eltwise/implementations.h"

namespace tilewire::eltwise {

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2Dense(const EltwiseDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name) {
  return CreateDense(desc, attributes, name, cpu::Isa::kAvx2);
}

}  // namespace tilewire::eltwise
