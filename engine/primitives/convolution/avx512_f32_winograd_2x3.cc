// SPDX-License-Identifier: Apache-2.0
//
// The row of Winograd's F(2x2, 3x3) over 32 registers of 16 lanes.
#include "engine/primitives/convolution/implementations.h"
#include "engine/primitives/convolution/winograd_convolution.h"

namespace tilewire::convolution {
absl::StatusOr<ConvolutionDesc> ResolveAvx512F32Winograd2x3(const ConvolutionDesc& desc,
                                                            const Attributes& attributes) {
  return ResolveWinograd(desc, attributes, /*tile=*/2, kAvx512Registers);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512F32Winograd2x3(const ConvolutionDesc& desc,
                                                                      const Attributes& attributes,
                                                                      absl::string_view name) {
  return CreateWinograd(desc, attributes, name, /*tile=*/2, kAvx512Registers);
}

}  // namespace tilewire::convolution
