// SPDX-License-Identifier: Apache-2.0
//
// The row of the integer convolution over 16 registers of 8 lanes: products of 16-bit numbers.
#include "engine/primitives/convolution/implementations.h"
#include "engine/primitives/convolution/integer_convolution.h"

namespace tilewire::convolution {
absl::StatusOr<ConvolutionDesc> ResolveAvx2U8S8Direct(const ConvolutionDesc& desc,
                                                      const Attributes&) {
  return ResolveInteger(desc, kAvx2Integers);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2U8S8Direct(const ConvolutionDesc& desc,
                                                                const Attributes& attributes,
                                                                absl::string_view name) {
  return CreateInteger(desc, attributes, name, kAvx2Integers);
}

}  // namespace tilewire::convolution
