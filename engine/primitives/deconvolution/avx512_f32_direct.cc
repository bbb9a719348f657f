// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/deconvolution/direct.h"
#include "engine/primitives/deconvolution/implementations.h"

namespace tilewire::deconvolution {

absl::StatusOr<DeconvolutionDesc> ResolveAvx512F32Direct(const DeconvolutionDesc& desc,
                                                         const Attributes& attributes) {
  return ResolveDirect(desc, attributes, cpu::Isa::kAvx512);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512F32Direct(const DeconvolutionDesc& desc,
                                                                 const Attributes& attributes,
                                                                 absl::string_view name) {
  return CreateDirect(desc, attributes, name, cpu::Isa::kAvx512);
}

}  // namespace tilewire::deconvolution
