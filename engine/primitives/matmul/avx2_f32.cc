// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/matmul/implementations.h"
#include "engine/primitives/matmul/tiles.h"

namespace tilewire::matmul {

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2F32(const MatmulDesc& desc,
                                                         const Attributes& attributes,
                                                         absl::string_view name) {
  return CreateTiles(desc, attributes, name, cpu::Isa::kAvx2);
}

}  // namespace tilewire::matmul
