// SPDX-License-Identifier: Apache-2.0
//
// Estimated cycles per image of the rows that take a 3x3 convolution with stride 1, of which they
// choose: direct and Winograd's, by vectors and by planes of bf16 on matrix tiles. Only the shape
// of an image and the unit decide. Pure functions.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_WINOGRAD_WINOGRAD_CHOICE_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_WINOGRAD_WINOGRAD_CHOICE_H_

#include "absl/status/status.h"
#include "engine/base/precision.h"
#include "engine/primitives/convolution/direct/tiling.h"
#include "engine/primitives/convolution/geometry.h"

namespace tilewire::convolution {

// Winograd's rows take it, whether it is faster or not.
bool SuitsWinograd(const ConvolutionDesc& desc, const Geometry& geometry);

// Every function below is for a geometry that suits Winograd's.

// kUnimplemented  the direct convolution is estimated to be faster
absl::Status RequireFasterThanDirect(const Geometry& geometry, int tile, const VectorUnit& unit);
// kUnimplemented  the other tile is estimated to be faster
absl::Status RequireFasterTile(const Geometry& geometry, int tile, const VectorUnit& unit);

// Of Winograd's convolution by three planes on matrix tiles:
//   kUnimplemented  the other tile, Winograd's convolution by f32 or, unless dst is pooled, a
//                   direct one of the precision is estimated to be faster
absl::Status RequireFasterByPlanes(const Geometry& geometry, int tile, Precision precision,
                                   bool pools);

// Of direct convolutions by products of bf16 numbers, of three planes or of pairs:
//   kUnimplemented  Winograd's by f32 is estimated to be faster
absl::Status RequirePlanesFasterThanWinograd(const Geometry& geometry);
absl::Status RequirePairsFasterThanWinograd(const Geometry& geometry, const VectorUnit& unit);

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_WINOGRAD_WINOGRAD_CHOICE_H_
