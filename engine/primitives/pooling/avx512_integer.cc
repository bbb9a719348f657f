// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/pooling/channel_rows.h"
#include "engine/primitives/pooling/implementations.h"

namespace tilewire::pooling {

absl::StatusOr<PoolingDesc> ResolveAvx512Integer(const PoolingDesc& desc,
                                                 const Attributes& attributes) {
  ABSL_RETURN_IF_ERROR(RequireInteger(desc.src));
  return ResolveChannelRows(cpu::Isa::kAvx512, desc, attributes);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512Integer(const PoolingDesc& desc,
                                                               const Attributes& attributes,
                                                               absl::string_view name) {
  return CreateChannelRows(cpu::Isa::kAvx512, desc, attributes, name);
}

}  // namespace tilewire::pooling
