// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/batch_normalization/implementations.h"
#include "engine/primitives/batch_normalization/rows.h"

namespace tilewire::batch_normalization {

absl::StatusOr<BatchNormalizationDesc> ResolveAvx512F32(const BatchNormalizationDesc& desc,
                                                        const Attributes& attributes) {
  return ResolveRows(desc, attributes, cpu::Isa::kAvx512);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512F32(const BatchNormalizationDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name) {
  return CreateRows(desc, attributes, name, cpu::Isa::kAvx512);
}

}  // namespace tilewire::batch_normalization
