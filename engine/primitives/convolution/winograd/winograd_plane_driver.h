// SPDX-License-Identifier: Apache-2.0
//
// The Winograd convolution by products of three planes of bf16 on matrix tiles (plane_tile.h):
// the transforms are those of f32, and between them inputs and weights are split, and the sums of a
// point's products are f32. See the .cc for the order of the work.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_WINOGRAD_WINOGRAD_PLANE_DRIVER_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_WINOGRAD_WINOGRAD_PLANE_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/jit/generator.h"
#include "engine/kernels/planes/plane_split.h"
#include "engine/memory/plane_layout.h"
#include "engine/primitives/convolution/winograd/winograd_plan.h"
#include "engine/primitives/convolution/winograd/winograd_tiles.h"
#include "engine/threading/arena.h"

namespace tilewire::convolution {

// Immutable.
class WinogradPlaneDriver {
 public:
  //   kUnimplemented      strides do not fit the 32-bit displacements of the generated code
  //   kResourceExhausted  no memory for code
  static absl::StatusOr<WinogradPlaneDriver> Create(absl::string_view name,
                                                    const WinogradProblem& problem);

  // The scratchpad is on a 64-byte boundary.
  void Run(const WinogradOperands& operands, std::byte* scratchpad,
           const threading::Team& team) const;

  int64_t scratchpad_bytes() const;
  int64_t code_bytes() const;

 private:
  // Tiles of the row of all, and their part of the scratchpad.
  struct Block {
    Range tiles;
    std::byte* v;       // [point][group][step][plane][32 lines]
    float* m;           // [point][group][output block][tile][lane]
    std::byte* copies;  // of each thread: a step of V before it is split
  };

  WinogradPlaneDriver(const WinogradProblem& problem, WinogradTiles tiles);
  absl::Status Compile(absl::string_view name);

  int64_t Groups(const Block& block) const;
  Range TilesOf(const Block& block, int64_t group) const;
  int64_t VPoint() const { return problem_.plan.block_groups * layout_.GroupBytes(); }
  int64_t BlockBytes() const;  // of V and M
  Block BlockAt(int64_t index, std::byte* scratchpad, std::byte* copies) const;

  void RunBlock(const WinogradOperands& operands, const Block& block,
                const threading::Team& team) const;
  void MakeInputs(const WinogradOperands& operands, const Block& block, int64_t group, int64_t step,
                  float* copy) const;
  void Multiply(const WinogradOperands& operands, const Block& block, int64_t point,
                const Range& panels) const;

  WinogradProblem problem_;
  PlaneLayout layout_;  // of the weights: a matrix is a point, a group of it a panel
  WinogradTiles tiles_;
  int64_t slots_ = 1;  // blocks, or parts of the shared one, that may be in work at a time
  std::unique_ptr<const PlaneSplit> split_;
  std::unique_ptr<const jit::Generator> products_[2]
                                                 [2];  // by whether a panel has one block, 16 rows
};

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_WINOGRAD_WINOGRAD_PLANE_DRIVER_H_
