// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/pooling/blocked.h"
#include "engine/primitives/pooling/implementations.h"

namespace tilewire::pooling {

absl::StatusOr<PoolingDesc> ResolveAvx512F32(const PoolingDesc& desc,
                                             const Attributes& attributes) {
  return ResolveBlocked(cpu::Isa::kAvx512, desc, attributes);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512F32(const PoolingDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name) {
  return CreateBlocked(cpu::Isa::kAvx512, desc, attributes, name);
}

}  // namespace tilewire::pooling
