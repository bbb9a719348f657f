// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/reduction/implementations.h"
#include "engine/primitives/reduction/strided.h"

namespace tilewire::reduction {

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2F32(const ReductionDesc& desc,
                                                         const Attributes& attributes,
                                                         absl::string_view name) {
  return CreateStrided(desc, attributes, name, cpu::Isa::kAvx2);
}

}  // namespace tilewire::reduction
