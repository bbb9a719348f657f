// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of resampling.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_RESAMPLING_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_RESAMPLING_IMPLEMENTATIONS_H_

#include <vector>

#include "engine/primitives/resampling/resampling.h"

namespace tilewire::resampling {

// Resampling row by row, shared by avx512_f32 and avx2_f32. Takes nchw, and layouts whose
// channels, all or a block of them, follow each other at a pixel (nhwc, nChw16c, nChw8c); the same
// with one and three spatial dimensions.
TILEWIRE_ROW(ResamplingDesc, Rows);

TILEWIRE_ROW(ResamplingDesc, Reference);

// Where one output of a dimension comes from.
struct Sample {
  int64_t index[2];
  float weight[2];  // 1 and 0 for nearest
};
// One per output of spatial dimension `d` (of the tensors: 2 and up).
std::vector<Sample> SamplesOf(const ResamplingDesc& desc, int d);

}  // namespace tilewire::resampling

#endif  // ENGINE_PRIMITIVES_RESAMPLING_IMPLEMENTATIONS_H_
