// SPDX-License-Identifier: Apache-2.0
//
// The Winograd convolution by products of f32: the loops over blocks of tiles, points and panels of
// output channels, around its generated functions. One driver serves every vector unit.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_WINOGRAD_WINOGRAD_DRIVER_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_WINOGRAD_WINOGRAD_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/jit/generator.h"
#include "engine/primitives/convolution/winograd/winograd_gemm_generator.h"
#include "engine/primitives/convolution/winograd/winograd_plan.h"
#include "engine/primitives/convolution/winograd/winograd_tiles.h"
#include "engine/threading/arena.h"

namespace tilewire::convolution {

// Immutable.
class WinogradDriver {
 public:
  //   kUnimplemented      strides do not fit the 32-bit displacements of the generated code
  //   kResourceExhausted  no memory for code
  static absl::StatusOr<WinogradDriver> Create(absl::string_view name,
                                               const WinogradProblem& problem);

  // The scratchpad is on a 64-byte boundary.
  void Run(const WinogradOperands& operands, std::byte* scratchpad,
           const threading::Team& team) const;

  int64_t scratchpad_bytes() const;
  int64_t code_bytes() const;

 private:
  // Tiles [first, first + count), with their transformed inputs in v.
  struct Block {
    int64_t first, count, groups;
    float* v;
  };

  WinogradDriver(const WinogradProblem& problem, WinogradTiles tiles);
  absl::Status Generate(absl::string_view name);
  WinogradGemmFunction Keep(std::unique_ptr<const jit::Generator> generator);

  Block BlockAt(int64_t index, float* v) const;
  Range TilesOf(const Block& block, int64_t group) const;
  void RunAlone(const WinogradOperands& operands, const Block& block) const;
  void RunShared(const WinogradOperands& operands, const Block& block,
                 const threading::Team& team) const;
  void RunPanel(const WinogradOperands& operands, const Block& block, int64_t panel,
                float* m) const;
  void TransformInputs(const WinogradOperands& operands, const Block& block, int64_t group) const;
  void Multiply(const WinogradOperands& operands, const Block& block, int64_t panel, int64_t point,
                float* m) const;

  WinogradProblem problem_;
  WinogradTiles tiles_;
  int64_t slots_ = 1;  // blocks, or panels of the shared one, that may be in work at a time
  std::vector<std::unique_ptr<const jit::Generator>> generators_;
  WinogradGemmFunction multiply_ = nullptr, multiply_last_ = nullptr;  // the last panel
};

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_WINOGRAD_WINOGRAD_DRIVER_H_
