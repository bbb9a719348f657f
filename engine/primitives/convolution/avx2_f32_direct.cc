// SPDX-License-Identifier: Apache-2.0
//
// The row of the direct convolution over 16 registers of 8 lanes: tiles of up to 3 x 4 or 2 x 6.
#include "engine/primitives/convolution/direct_convolution.h"
#include "engine/primitives/convolution/implementations.h"

namespace tilewire::convolution {
absl::StatusOr<ConvolutionDesc> ResolveAvx2F32Direct(const ConvolutionDesc& desc,
                                                     const Attributes& attributes) {
  return ResolveDirect(desc, attributes, kAvx2Registers.lanes);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2F32Direct(const ConvolutionDesc& desc,
                                                               const Attributes& attributes,
                                                               absl::string_view name) {
  return CreateDirect(desc, attributes, name, kAvx2Registers);
}

}  // namespace tilewire::convolution
