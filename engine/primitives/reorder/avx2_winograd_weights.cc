// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/primitives/reorder/generated_winograd_weights.h"

namespace tilewire::reorder {

absl::StatusOr<ReorderDesc> ResolveAvx2WinogradWeights(const ReorderDesc& desc,
                                                       const Attributes& attributes) {
  ABSL_RETURN_IF_ERROR(RequireGeneratedWinograd(desc, attributes, cpu::Isa::kAvx2));
  return desc;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2WinogradWeights(const ReorderDesc& desc,
                                                                     const Attributes& attributes,
                                                                     absl::string_view name) {
  return CreateGeneratedWinograd(desc, attributes, name, cpu::Isa::kAvx2);
}

}  // namespace tilewire::reorder
