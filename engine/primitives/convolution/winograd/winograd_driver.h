// SPDX-License-Identifier: Apache-2.0
//
// The Winograd convolution around its generated functions: the loops over blocks of tiles, points
// and panels of output channels. See the .cc of each kind for the order of its work.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_WINOGRAD_WINOGRAD_DRIVER_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_WINOGRAD_WINOGRAD_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/primitives/convolution/winograd/winograd_plan.h"
#include "engine/primitives/convolution/winograd/winograd_tiles.h"
#include "engine/threading/arena.h"

namespace tilewire::convolution {

// Immutable.
class WinogradDriver {
 public:
  using Created = absl::StatusOr<std::unique_ptr<const WinogradDriver>>;

  // By products of f32, for every vector unit; and by products of three planes of bf16 on matrix
  // tiles (plane_tile.h), between transforms that are those of f32.
  //   kUnimplemented      strides do not fit the 32-bit displacements of the generated code
  //   kResourceExhausted  no memory for code
  static Created Create(absl::string_view name, const WinogradProblem& problem);
  static Created CreateByPlanes(absl::string_view name, const WinogradProblem& problem);

  virtual ~WinogradDriver() = default;

  // The scratchpad is on a 64-byte boundary.
  virtual void Run(const WinogradOperands& operands, std::byte* scratchpad,
                   const threading::Team& team) const = 0;

  virtual int64_t scratchpad_bytes() const = 0;
  virtual int64_t code_bytes() const = 0;

 protected:
  // `parts`: pieces that threads share of a block, where they share blocks.
  WinogradDriver(const WinogradProblem& problem, WinogradTiles tiles, int64_t parts);

  const WinogradPlan& plan() const { return problem_.plan; }
  int64_t Blocks() const { return plan().Blocks(problem_.geometry.batch); }
  // A block and a group of it are ranges of the tiles of all images.
  Range Block(int64_t index) const { return plan().TilesOfBlock(problem_.geometry.batch, index); }
  int64_t Groups(const Range& block) const { return DivUp(block.size, plan().group_tiles); }
  Range Group(const Range& block, int64_t index) const;
  Range BlocksOfPanel(int64_t panel) const;  // of output channels

  const WinogradProblem problem_;
  const WinogradTiles tiles_;
  const int64_t slots_;  // blocks, or parts of the shared one, that may be in work at a time
};

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_WINOGRAD_WINOGRAD_DRIVER_H_
