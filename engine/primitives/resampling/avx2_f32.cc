// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/resampling/implementations.h"
#include "engine/primitives/resampling/rows.h"

namespace tilewire::resampling {

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2F32(const ResamplingDesc& desc,
                                                         const Attributes& attributes,
                                                         absl::string_view name) {
  return CreateRows(desc, attributes, name, cpu::Isa::kAvx2);
}

}  // namespace tilewire::resampling
