// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/primitives/reorder/implementations.h"
#include "engine/primitives/reorder/weights_packing.h"

namespace tilewire::reorder {

absl::StatusOr<ReorderDesc> ResolveAvx2Weights(const ReorderDesc& desc,
                                               const Attributes& attributes) {
  ABSL_RETURN_IF_ERROR(RequireWeightsPacking(desc, attributes, /*lanes=*/8));
  return desc;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2Weights(const ReorderDesc& desc,
                                                             const Attributes& attributes,
                                                             absl::string_view name) {
  return CreateWeightsPacking(desc, attributes, name, CompileAvx2ChannelBlocking);
}

}  // namespace tilewire::reorder
