// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/lrn/implementations.h"
#include "engine/primitives/lrn/runs.h"

namespace tilewire::lrn {

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512F32Runs(const LrnDesc& desc,
                                                               const Attributes& attributes,
                                                               absl::string_view name) {
  return CreateRuns(desc, attributes, name, cpu::Isa::kAvx512);
}

}  // namespace tilewire::lrn
