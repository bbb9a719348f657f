// SPDX-License-Identifier: Apache-2.0
//
// Winograd's convolutions F(2x2, 3x3) and F(4x4, 3x3) as rows of the table: f32, 3x3, stride 1,
// dense, one group, any padding. They take 2.25 and 4 times fewer multiplications than the direct
// convolution, but transforms of src and dst, and weights 1.8 and 4 times as large.
//
//   src, dst  nChw16c, or nChw8c for 8 lanes; weights  Winograd's own layout, through `any`
//
// A max pooling post-op is applied in the transform of the outputs, to the pixels of one tile.
// Winograd is chosen if winograd_plan.h estimates that it is the fastest.
// ConvolutionAlgorithm::kWinograd asks for it whatever the estimate, kDirect forbids it. The error
// of an output relative to the root mean square of all is below 1e-5 against exact arithmetic. An
// infinity spreads as NaN over a tile.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_WINOGRAD_CONVOLUTION_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_WINOGRAD_CONVOLUTION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/primitives/convolution/convolution.h"
#include "engine/primitives/convolution/tiling.h"

namespace tilewire::convolution {

// See implementation.h. The row's algorithm is kWinograd2x3 or kWinograd4x3.
absl::StatusOr<ConvolutionDesc> ResolveWinograd(const ConvolutionDesc& desc,
                                                const Attributes& attributes,
                                                const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateWinograd(const ConvolutionDesc& desc,
                                                          const Attributes& attributes,
                                                          const ImplementationFacts& facts);

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_WINOGRAD_CONVOLUTION_H_
