// SPDX-License-Identifier: Apache-2.0
//
// Weighted sums along one dimension, with taps and weights given for each index of dst:
//
//   dst[.., i, ..] = sum over t < taps of weights[i*taps + t] * src[.., indices[i*taps + t], ..]
//
// in f32, in the order of the taps, starting at 0. Resampling with any rule of coordinates becomes
// this, one dimension after the other; resampling.h has the two common rules in one pass.
//
// Shapes    src and dst the same but along `axis`, rank 1 to 12.
// Types     f32.
// Layouts   any; dst may be `any`: the layout of src. dense_rows takes dense tensors that are
//           nested and blocked alike, and not blocked along `axis`. Not in place.
// Threads   immutable; see primitive.h.
// Wire      not offered: only models use it.
// Source    ONNX, Resize and Upsample.
#ifndef ENGINE_PRIMITIVES_INTERPOLATE_INTERPOLATE_H_
#define ENGINE_PRIMITIVES_INTERPOLATE_INTERPOLATE_H_

#include <vector>

#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

struct InterpolateDesc {
  MemoryDesc src, dst;
  int axis = 2;
  int64_t taps = 2;
  std::vector<int64_t> indices;  // `taps` for each index of dst along the axis
  std::vector<float> weights;    // as many
};
TILEWIRE_FIELDS(InterpolateDesc, src, dst, axis, taps, indices, weights);

//   kInvalidArgument  an axis outside the rank, dims that differ off it, another count of indices
//                     or weights, an index outside src
TILEWIRE_PRIMITIVE_FUNCTIONS(Interpolate);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_INTERPOLATE_INTERPOLATE_H_
