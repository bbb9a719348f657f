// SPDX-License-Identifier: Apache-2.0
//
// The row of the direct convolution over 16 registers of 8 lanes: tiles of up to 3 x 4 or 2 x 6.
#include "engine/primitives/convolution/direct_convolution.h"
#include "engine/primitives/convolution/implementations.h"

namespace tilewire::convolution {
namespace {

constexpr RegisterFile kRegisters = {.lanes = 8, .vectors = 16};

}  // namespace

absl::StatusOr<ConvolutionDesc> ResolveAvx2F32Direct(const ConvolutionDesc& desc,
                                                     const Attributes& attributes) {
  return ResolveDirect(desc, attributes, kRegisters.lanes);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2F32Direct(const ConvolutionDesc& desc,
                                                               const Attributes& attributes,
                                                               absl::string_view name) {
  return CreateDirect(desc, attributes, name, kRegisters);
}

}  // namespace tilewire::convolution
