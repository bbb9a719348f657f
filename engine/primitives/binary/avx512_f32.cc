// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/binary/implementations.h"
#include "engine/primitives/binary/rows.h"

namespace tilewire::binary {

absl::StatusOr<BinaryDesc> ResolveAvx512F32(const BinaryDesc& desc, const Attributes& attributes) {
  return ResolveRows(desc, attributes, cpu::Isa::kAvx512);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512F32(const BinaryDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name) {
  return CreateRows(desc, attributes, name, cpu::Isa::kAvx512);
}

}  // namespace tilewire::binary
