// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/lrn/blocked.h"
#include "engine/primitives/lrn/implementations.h"

namespace tilewire::lrn {

absl::StatusOr<LrnDesc> ResolveAvx2F32Blocked(const LrnDesc& desc, const Attributes& attributes) {
  return ResolveBlocked(desc, attributes, cpu::Isa::kAvx2);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2F32Blocked(const LrnDesc& desc,
                                                                const Attributes& attributes,
                                                                absl::string_view name) {
  return CreateBlocked(desc, attributes, name, cpu::Isa::kAvx2);
}

}  // namespace tilewire::lrn
