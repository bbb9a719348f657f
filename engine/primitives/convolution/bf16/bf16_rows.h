// SPDX-License-Identifier: Apache-2.0
//
// A copy of plain f32 images, rounded to bf16, as a first layer by products of pairs reads it:
// [image][channel][height][row], where a row begins with the padding on its left and neighbours
// along the width are a pair (bf16_rounding.h). With a stride of 2 along the width a window is a
// window of pairs: it begins with one, and its taps, of which an odd last one is joined by a tap
// whose weight is 0, are pairs. So the convolution of the copy has a stride of 1, half as many taps
// and no padding along the width.
//
// Immutable; thread-safe.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_BF16_BF16_ROWS_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_BF16_BF16_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/kernels/planes/bf16_rounding.h"
#include "engine/primitives/convolution/direct/direct_driver.h"
#include "engine/threading/arena.h"

namespace tilewire::convolution {

class Bf16Rows {
 public:
  // `src`: of f32; without groups and depth, with a stride of 2 and dense taps along the width.
  //   kResourceExhausted  the copy of an image is too large, no memory for code
  static absl::StatusOr<Bf16Rows> Create(absl::string_view name, const Geometry& geometry,
                                         const ActivationStrides& src);

  // The geometry and strides of the convolution of the copy; strides count pairs.
  Geometry CopiedGeometry() const;
  ActivationStrides CopiedStrides() const;
  int64_t ImageBytes() const { return CopiedStrides().image * kPairBytes; }

  // `src` is element (0,...,0) of the first image.
  void Run(const float* src, int64_t images, std::byte* to, const threading::Team& team) const;

  int64_t code_bytes() const { return static_cast<int64_t>(rounding_->code_bytes()); }

 private:
  static constexpr int64_t kPairBytes = 4, kNumberBytes = 2;

  Bf16Rows(const Geometry& geometry, const ActivationStrides& src)
      : geometry_(geometry), src_(src) {}
  int64_t TapPairs() const;    // of a window's row
  int64_t RowNumbers() const;  // of a row of the copy
  void RunRow(const float* src, std::byte* to) const;
  void Round(const float* from, int64_t count, std::byte* to) const;

  const Geometry geometry_;
  const ActivationStrides src_;
  std::shared_ptr<const Bf16Rounding> rounding_;
};

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_BF16_BF16_ROWS_H_
