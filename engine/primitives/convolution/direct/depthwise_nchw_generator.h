// SPDX-License-Identifier: Apache-2.0
//
// Generates the depthwise convolution of the planes of channels from and to rows of neighbouring
// pixels, as those of nchw. The lanes of a vector are pixels of a row; a tile is up to 8 rows of
// them, one below the other (plane_tiling.h):
//
//   for each row of src that the tile reads, for each width tap:
//     load a vector of src, each lane's pixel at that tap
//     for each row of the tile that the row of src is a tap of: add its product with the weight
//
// so that what is loaded, which often crosses a cache line, serves several rows. With stride 2 two
// neighbouring taps are the even and the odd pixels of two vectors. Taps in the padding are left
// out lane by lane, and products are added in the order of the blocked depthwise convolution: both
// give the same bits.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_DEPTHWISE_NCHW_GENERATOR_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_DEPTHWISE_NCHW_GENERATOR_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/jit/generator.h"
#include "engine/jit/vector_unit.h"
#include "engine/kernels/attributes.h"
#include "engine/primitives/convolution/geometry.h"

namespace tilewire::convolution {

// Rows of a tile.
inline constexpr int kDepthwiseNchwRows = 8;

struct DepthwiseNchwConfig {
  VectorUnit unit;
  Geometry geometry;  // without depth; the stride along a row is 1 or 2
  int64_t src_row_bytes = 0, dst_row_bytes = 0;
  int64_t tap_bytes = 0;  // from a weight of the channel to the next
  bool has_bias = false;
  PostOps post_ops;
};

// Of neighbouring channels, `channels` >= 1, whose weights are neighbours.
struct DepthwiseNchwArgs {
  const float* src;
  const float* weights;
  const float* bias;
  const float* slopes;  // of a PRelu: tap_bytes of each one
  float* dst;
  int64_t channels, src_channel_bytes, dst_channel_bytes;
};
using DepthwiseNchwFunction = void (*)(const DepthwiseNchwArgs*);

// Distances between the rows of a tile, in bytes, fit 32 bits.
//   kResourceExhausted, kUnimplemented  see jit::Compile
absl::StatusOr<std::unique_ptr<const jit::Generator>> GenerateDepthwiseNchw(
    absl::string_view name, const DepthwiseNchwConfig& config);

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_DEPTHWISE_NCHW_GENERATOR_H_
