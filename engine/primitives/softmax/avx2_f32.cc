// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/softmax/implementations.h"
#include "engine/primitives/softmax/rows.h"

namespace tilewire::softmax {

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2F32(const SoftmaxDesc& desc,
                                                         const Attributes& attributes,
                                                         absl::string_view name) {
  return CreateRows(desc, attributes, name, cpu::Isa::kAvx2);
}

}  // namespace tilewire::softmax
