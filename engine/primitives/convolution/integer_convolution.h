// SPDX-License-Identifier: Apache-2.0
//
// The integer convolution: u8 or s8 sources, s8 weights. The row's instruction set decides the
// registers.
//
//   src      nhwc, any strides between pixels; read in place if the channels of a group are a
//            multiple of 4 and, with VNNI, the type is u8; any other layout without blocks of
//            pixels is copied first (integer_stage.h)
//   weights  OIhw4i16o4i and the like: blocks of up to 64 input channels in quads, 16 output
//            channels (8 with AVX2), with groups gOIhw...; with VNNI and an s8 source they carry
//            their compensation (memory_desc.h)
//   dst      nhwc, any strides between pixels; nChw16c
// and the same with 1 and 3 spatial dimensions.
//
// Sums are taken modulo 2^32: they are exact up to 65793 products.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_INTEGER_CONVOLUTION_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_INTEGER_CONVOLUTION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/kernels/integer_tile.h"
#include "engine/primitives/convolution/convolution.h"

namespace tilewire::convolution {

// See implementation.h.
absl::StatusOr<ConvolutionDesc> ResolveInteger(const ConvolutionDesc& desc,
                                               const Attributes& attributes,
                                               const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateInteger(const ConvolutionDesc& desc,
                                                         const Attributes& attributes,
                                                         const ImplementationFacts& facts);

// The same for one channel per group. src nhwc or nChw16c, u8 or s8; weights Goihw16g; dst as
// above.
absl::StatusOr<ConvolutionDesc> ResolveIntegerDepthwise(const ConvolutionDesc& desc,
                                                        const Attributes& attributes,
                                                        const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateIntegerDepthwise(const ConvolutionDesc& desc,
                                                                  const Attributes& attributes,
                                                                  const ImplementationFacts& facts);

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_INTEGER_CONVOLUTION_H_
