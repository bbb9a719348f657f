// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/concat/implementations.h"
#include "engine/primitives/concat/lanes.h"

namespace tilewire::concat {

absl::StatusOr<ConcatDesc> ResolveAvx512Lanes(const ConcatDesc& desc,
                                              const Attributes& attributes) {
  return ResolveLanes(desc, attributes, cpu::Isa::kAvx512);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512Lanes(const ConcatDesc& desc,
                                                             const Attributes& attributes,
                                                             absl::string_view name) {
  return CreateLanes(desc, attributes, name, cpu::Isa::kAvx512);
}

}  // namespace tilewire::concat
