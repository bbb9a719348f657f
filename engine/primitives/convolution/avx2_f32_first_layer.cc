// SPDX-License-Identifier: Apache-2.0
//
// The row of the first layer's convolution over 16 registers of 8 lanes.
#include "engine/primitives/convolution/direct_convolution.h"
#include "engine/primitives/convolution/implementations.h"

namespace tilewire::convolution {
namespace {

constexpr RegisterFile kRegisters = {.lanes = 8, .vectors = 16};

}  // namespace

absl::StatusOr<ConvolutionDesc> ResolveAvx2F32FirstLayer(const ConvolutionDesc& desc,
                                                         const Attributes& attributes) {
  return ResolveFirstLayer(desc, attributes, kRegisters.lanes);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2F32FirstLayer(const ConvolutionDesc& desc,
                                                                   const Attributes& attributes,
                                                                   absl::string_view name) {
  return CreateFirstLayer(desc, attributes, name, kRegisters);
}

}  // namespace tilewire::convolution
