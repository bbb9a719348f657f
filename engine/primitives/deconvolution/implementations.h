// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of table.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_DECONVOLUTION_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_DECONVOLUTION_IMPLEMENTATIONS_H_

#include "engine/primitives/deconvolution/deconvolution.h"

namespace tilewire::deconvolution {

// The direct f32 deconvolution, shared by avx512_f32_direct and avx2_f32_direct.
//
//   src, dst  nChw16c      weights  hwOI16i16o, ghwOI16i16o
// and the same with 1 and 3 spatial dimensions; 8 in place of 16 for AVX2. The channels of a group
// must be multiples of the block where there are several groups.
//
// The outputs of a row whose position has one remainder modulo the stride are a phase: the same
// taps reach them, and going from one to the next moves every tap by one pixel of src. A phase
// falls into segments inside which the set of taps that hit src is constant, and a segment into
// tiles.
TILEWIRE_ROW(DeconvolutionDesc, Direct);
TILEWIRE_COST(DeconvolutionDesc, Direct);

// So few output channels that they would fill a small part of a vector, of many pixels, and at
// least a block of input channels: lanes are input channels in the sums, and pixels in dst.
//
//   src nChw16c      weights OIhw16i      dst plain, rows without gaps
//
// No sum post-op where a stride goes along the row and taps of neighbouring outputs overlap.
TILEWIRE_ROW(DeconvolutionDesc, FewOutputs);
TILEWIRE_COST(DeconvolutionDesc, FewOutputs);

// Gradients by a direct convolution of the table in convolution.h, in whatever layouts that wants,
// with the two dimensions of channels of weights exchanged. The gradient of the bias is the sum, in
// the order of images, of each image's sum in double, rounded.
TILEWIRE_ROW(DeconvolutionDesc, Backward);

TILEWIRE_ROW(DeconvolutionDesc, Reference);

TILEWIRE_ROW(DeconvolutionDesc, ReferenceBackward);

// kUnimplemented for types and attributes that no forward row takes.
absl::Status RequireForwardF32(const DeconvolutionDesc& desc, const Attributes& attributes);

}  // namespace tilewire::deconvolution

#endif  // ENGINE_PRIMITIVES_DECONVOLUTION_IMPLEMENTATIONS_H_
