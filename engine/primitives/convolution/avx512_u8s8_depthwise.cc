// SPDX-License-Identifier: Apache-2.0
//
// The row of the integer depthwise convolution over 32 registers of 16 lanes, without VNNI:
// products of 16-bit numbers.
#include "engine/primitives/convolution/implementations.h"
#include "engine/primitives/convolution/integer_convolution.h"

namespace tilewire::convolution {
absl::StatusOr<ConvolutionDesc> ResolveAvx512U8S8Depthwise(const ConvolutionDesc& desc,
                                                           const Attributes&) {
  return ResolveIntegerDepthwise(desc, kAvx512Integers);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512U8S8Depthwise(const ConvolutionDesc& desc,
                                                                     const Attributes& attributes,
                                                                     absl::string_view name) {
  return CreateIntegerDepthwise(desc, attributes, name, kAvx512Integers);
}

}  // namespace tilewire::convolution
