// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/shuffle/implementations.h"
#include "engine/primitives/shuffle/lanes.h"

namespace tilewire::shuffle {

absl::StatusOr<ShuffleDesc> ResolveAvx2Lanes(const ShuffleDesc& desc,
                                             const Attributes& attributes) {
  return ResolveLanes(desc, attributes, cpu::Isa::kAvx2);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2Lanes(const ShuffleDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name) {
  return CreateLanes(desc, attributes, name, cpu::Isa::kAvx2);
}

}  // namespace tilewire::shuffle
