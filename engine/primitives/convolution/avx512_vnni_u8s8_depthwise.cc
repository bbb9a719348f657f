// SPDX-License-Identifier: Apache-2.0
//
// The row of the integer depthwise convolution over 32 registers of 16 lanes, with vpdpwssd.
#include "engine/primitives/convolution/implementations.h"
#include "engine/primitives/convolution/integer_convolution.h"

namespace tilewire::convolution {
absl::StatusOr<ConvolutionDesc> ResolveAvx512VnniU8S8Depthwise(const ConvolutionDesc& desc,
                                                               const Attributes&) {
  return ResolveIntegerDepthwise(desc, kVnniIntegers);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512VnniU8S8Depthwise(
    const ConvolutionDesc& desc, const Attributes& attributes, absl::string_view name) {
  return CreateIntegerDepthwise(desc, attributes, name, kVnniIntegers);
}

}  // namespace tilewire::convolution
