// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/layer_normalization/implementations.h"
#include "engine/primitives/layer_normalization/rows.h"

namespace tilewire::layer_normalization {

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2F32(const LayerNormalizationDesc& desc,
                                                         const Attributes& attributes,
                                                         absl::string_view name) {
  return CreateRows(desc, attributes, name, cpu::Isa::kAvx2);
}

}  // namespace tilewire::layer_normalization
