// SPDX-License-Identifier: Apache-2.0
//
// dense.h with 8 floats a register.
#include "engine/base/status_macros.h"
#include "engine/primitives/reorder/dense.h"

namespace tilewire::reorder {

absl::StatusOr<ReorderDesc> ResolveAvx2Dense(const ReorderDesc& desc,
                                             const Attributes& attributes) {
  ABSL_RETURN_IF_ERROR(RequireDense(desc, attributes));
  return desc;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2Dense(const ReorderDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name) {
  return CreateDense(desc, attributes, name, /*lanes=*/8);
}

}  // namespace tilewire::reorder
