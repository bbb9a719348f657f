// SPDX-License-Identifier: Apache-2.0
//
// The row of the integer convolution over 32 registers of 16 lanes, with vpdpbusd.
#include "engine/primitives/convolution/implementations.h"
#include "engine/primitives/convolution/integer_convolution.h"

namespace tilewire::convolution {
absl::StatusOr<ConvolutionDesc> ResolveAvx512VnniU8S8Direct(const ConvolutionDesc& desc,
                                                            const Attributes&) {
  return ResolveInteger(desc, kVnniIntegers);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512VnniU8S8Direct(const ConvolutionDesc& desc,
                                                                      const Attributes& attributes,
                                                                      absl::string_view name) {
  return CreateInteger(desc, attributes, name, kVnniIntegers);
}

}  // namespace tilewire::convolution
