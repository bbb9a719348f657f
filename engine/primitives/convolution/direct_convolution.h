// SPDX-License-Identifier: Apache-2.0
//
// The direct f32 convolution: the layouts it wants for the vectors of the row's instruction set,
// and the primitive around DirectDriver.
//
//   src      nChw16c; or plain, any strides (nchw, nhwc), which suits few channels
//   weights  OIhw16i16o, gOIhw16i16o; depthwise Goihw16g; first layer Ohwi16o
//   dst      nChw16c
// and the same with 1 and 3 spatial dimensions; 8 in place of 16 with AVX2. Groups whose channels
// are not a multiple of the lanes are copied to aligned groups in the scratchpad, and their results
// back.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_CONVOLUTION_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_CONVOLUTION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/primitives/convolution/convolution.h"
#include "engine/primitives/convolution/tiling.h"

namespace tilewire::convolution {

// See implementation.h.
absl::StatusOr<ConvolutionDesc> ResolveDirect(const ConvolutionDesc& desc,
                                              const Attributes& attributes,
                                              const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateDirect(const ConvolutionDesc& desc,
                                                        const Attributes& attributes,
                                                        const ImplementationFacts& facts);

// 1 to 4 input channels in one group, read from a plain src as it lies (nchw and nhwc give the same
// bits); weights hold these channels alone: Ohwi16o.
absl::StatusOr<ConvolutionDesc> ResolveFirstLayer(const ConvolutionDesc& desc,
                                                  const Attributes& attributes,
                                                  const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateFirstLayer(const ConvolutionDesc& desc,
                                                            const Attributes& attributes,
                                                            const ImplementationFacts& facts);

absl::StatusOr<ConvolutionDesc> ResolveDepthwise(const ConvolutionDesc& desc,
                                                 const Attributes& attributes,
                                                 const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateDepthwise(const ConvolutionDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts);

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_CONVOLUTION_H_
