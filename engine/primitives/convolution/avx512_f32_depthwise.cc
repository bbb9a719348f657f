// SPDX-License-Identifier: Apache-2.0
//
// The row of the depthwise convolution over 32 registers of 16 lanes.
#include "engine/primitives/convolution/direct_convolution.h"
#include "engine/primitives/convolution/implementations.h"

namespace tilewire::convolution {
absl::StatusOr<ConvolutionDesc> ResolveAvx512F32Depthwise(const ConvolutionDesc& desc,
                                                          const Attributes& attributes) {
  return ResolveDepthwise(desc, attributes, kAvx512Registers.lanes);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512F32Depthwise(const ConvolutionDesc& desc,
                                                                    const Attributes& attributes,
                                                                    absl::string_view name) {
  return CreateDepthwise(desc, attributes, name, kAvx512Registers);
}

}  // namespace tilewire::convolution
