// SPDX-License-Identifier: Apache-2.0
//
// The row of the direct convolution over 32 registers of 16 lanes: tiles of up to 4 x 6 or 2 x 14.
#include "engine/primitives/convolution/direct_convolution.h"
#include "engine/primitives/convolution/implementations.h"

namespace tilewire::convolution {
absl::StatusOr<ConvolutionDesc> ResolveAvx512F32Direct(const ConvolutionDesc& desc,
                                                       const Attributes& attributes) {
  return ResolveDirect(desc, attributes, kAvx512Registers.lanes);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512F32Direct(const ConvolutionDesc& desc,
                                                                 const Attributes& attributes,
                                                                 absl::string_view name) {
  return CreateDirect(desc, attributes, name, kAvx512Registers);
}

}  // namespace tilewire::convolution
