// SPDX-License-Identifier: Apache-2.0
//
// Copies one image of bytes from any layout to the one that the integer convolution reads fastest:
// [depth][height][width][group][channels of the group, rounded up to steps], with the padding
// around it. Every byte is xored with `flip`: 0x80 turns an s8 source into u8 by adding 128, and
// its zero padding into 128, so that the weights' compensation is the same for every output.
// Immutable.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_INTEGER_INTEGER_STAGE_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_INTEGER_INTEGER_STAGE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/primitives/convolution/geometry.h"
#include "engine/primitives/convolution/integer/integer_driver.h"

namespace tilewire::convolution {

class IntegerStage {
 public:
  // `src` has no blocks, or blocks of channels. `step` is a quad or a multiple of it.
  //   kResourceExhausted  the copy is too large
  static absl::StatusOr<IntegerStage> Create(const MemoryDesc& src, const Geometry& geometry,
                                             uint8_t flip, int64_t step);

  int64_t bytes() const { return size_[0] * size_[1] * size_[2] * pixel_bytes_; }
  // The convolution of the copy: no padding, input channels in quads.
  Geometry StagedGeometry() const;
  ByteStrides StagedStrides() const;

  // `image` is element (0,0,...) of one image.
  void Run(const std::byte* image, std::byte* to, const threading::Team& team) const;

 private:
  IntegerStage(const MemoryDesc& src, const Geometry& geometry, uint8_t flip, int64_t step);
  void RunRow(const uint8_t* image, uint8_t* to, int64_t depth, int64_t height) const;
  void CopyPixels(const uint8_t* from, uint8_t* to, int64_t count) const;
  void CopyGroups(const uint8_t* from, uint8_t* to) const;  // of one pixel

  Geometry geometry_;
  Spatial size_{1, 1, 1};  // of the copy
  Spatial strides_;        // of src
  uint8_t flip_;
  int64_t group_bytes_;        // of a pixel of the copy
  int64_t pixel_bytes_;        // of the copy
  bool dense_ = false;         // the bytes of a pixel lie in src as in the copy
  bool short_pixels_ = false;  // up to four channels side by side
  bool long_groups_ = false;   // channels side by side, enough of them to copy a group at once
  // The offset in src of each byte of a pixel; those after the last channel repeat one.
  std::vector<int64_t> channels_;
};

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_INTEGER_INTEGER_STAGE_H_
