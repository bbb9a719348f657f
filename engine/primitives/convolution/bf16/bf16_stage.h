// SPDX-License-Identifier: Apache-2.0
//
// A copy of f32 images, rounded to bf16, as the direct convolution of pairs reads it: blocks of 32
// channels, [image][group][channels/32][depth][height][width][32], where a pair of channels takes
// the place of one f32 channel (bf16_rounding.h). A 1x1 window leaves out the pixels that its
// strides step over.
//
// Immutable; thread-safe.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_BF16_BF16_STAGE_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_BF16_BF16_STAGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/kernels/planes/bf16_rounding.h"
#include "engine/primitives/convolution/direct/direct_driver.h"
#include "engine/threading/arena.h"

namespace tilewire::convolution {

class Bf16Stage {
 public:
  // `src`: of f32, in blocks of 16 neighbouring channels; groups begin at a block.
  //   kResourceExhausted  the copy of an image is too large, no memory for code
  static absl::StatusOr<Bf16Stage> Create(absl::string_view name, const Geometry& geometry,
                                          const ActivationStrides& src);

  // The geometry and strides of the convolution of the copy: channels are pairs, and strides count
  // them.
  const Geometry& CopiedGeometry() const { return geometry_; }
  ActivationStrides CopiedStrides() const;
  int64_t ImageBytes() const { return CopiedStrides().image * kPairBytes; }

  // `src` is element (0,...,0) of the first image.
  void Run(const float* src, int64_t images, std::byte* to, const threading::Team& team) const;

  int64_t code_bytes() const { return static_cast<int64_t>(rounding_->code_bytes()); }

 private:
  static constexpr int64_t kPairBytes = 4;

  Bf16Stage(const Geometry& geometry, const ActivationStrides& src);
  int64_t Blocks() const;  // of 32 channels of a group
  // Lines of one block of an image: as many pixels as follow each other at one distance are a row.
  void RunBlock(const float* src, int64_t block, int64_t first_row, int64_t rows,
                std::byte* to) const;

  const int64_t channels_;  // of a group
  Geometry geometry_;
  ActivationStrides src_;
  std::array<int64_t, 3> rows_;  // outer, inner, pixels of a row
  std::array<int64_t, 3> steps_;
  std::shared_ptr<const Bf16Rounding> rounding_;
};

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_BF16_BF16_STAGE_H_
