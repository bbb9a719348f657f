// SPDX-License-Identifier: Apache-2.0
//
// The deconvolutions around their generated tiles: dst is cut into bands of rows, and rows into
// segments of outputs that the same taps reach.
#ifndef ENGINE_PRIMITIVES_DECONVOLUTION_DIRECT_DRIVER_H_
#define ENGINE_PRIMITIVES_DECONVOLUTION_DIRECT_DRIVER_H_

#include <compare>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "engine/jit/generator.h"
#include "engine/primitives/deconvolution/deconvolution.h"
#include "engine/primitives/primitive.h"

namespace tilewire::deconvolution {

struct Blocking {
  int64_t src_lanes = 0;    // channels of a block of src, which is a pixel's distance to the next
  int64_t dst_lanes = 0;    // the same of dst
  int64_t tile_blocks = 1;  // blocks of dst that a tile computes
  int64_t tile_pixels = 1;  // the most outputs of a tile
  // Whether a tile holds all phases of its row, side by side; tile_pixels then counts those of one.
  bool merges_columns = false;
  // Whether it also holds the rows of all phases along the height; not if phase_by_phase.
  bool merges_rows = false;
  // Whether the rows of a phase follow each other, so that weights stay in the first cache; else
  // the phases of a row of src, so that the row does.
  bool phase_by_phase = true;
  // Whether a tile may hold outputs of a column: those of narrow segments, which other taps reach
  // than the rest of their rows, would be too few for a tile. It has an
  // effect only if phase_by_phase, and not if merges_rows.
  bool has_columns = false;
};

// The layouts of every tile-wise deconvolution: `desc` with `any` replaced.
//   kUnimplemented  a layout, group or stride that the driver does not take
struct Layouts {
  int64_t lanes;
  std::string dst, weights;  // patterns
};
absl::StatusOr<DeconvolutionDesc> ResolveTiles(const DeconvolutionDesc& desc,
                                               const Layouts& layouts);

// "aBcd16b" for rank 4.
std::string BlockedPattern(int rank, int64_t lanes);
// Whether channels are in blocks of `lanes`, and neighbouring pixels beside each other.
absl::Status RequireBlocked(const MemoryDesc& md, int64_t lanes);

// A tile: outputs of a phase, which are neighbours in a row or in a column.
struct TileShape {
  bool last;       // group of output blocks
  bool is_column;  // only where Blocking::has_columns
  int64_t pixels;
  auto operator<=>(const TileShape&) const = default;
};
// Generates tiles; its function is a TileFunction (tile_loop.h).
using GenerateTile =
    absl::FunctionRef<absl::StatusOr<std::unique_ptr<const jit::Generator>>(const TileShape&)>;

absl::StatusOr<std::unique_ptr<Primitive>> CreateDriver(PrimitiveInfo info,
                                                        const DeconvolutionDesc& desc,
                                                        const Blocking& blocking,
                                                        GenerateTile generate);

}  // namespace tilewire::deconvolution

#endif  // ENGINE_PRIMITIVES_DECONVOLUTION_DIRECT_DRIVER_H_
