// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/reduction/implementations.h"
#include "engine/primitives/reduction/strided.h"

namespace tilewire::reduction {

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512F32(const ReductionDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name) {
  return CreateStrided(desc, attributes, name, cpu::Isa::kAvx512);
}

}  // namespace tilewire::reduction
