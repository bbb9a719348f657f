// SPDX-License-Identifier: Apache-2.0
//
// The windows of a convolution as rows of products by planes
// (engine/kernels/planes/plane_product.h): a product is an image and a group of it, its rows are
// the pixels of dst.
//
// Where windows overlap, the lines of a strip of rows of dst are the pixels of src that they read,
// with the padding around them, so that each is split once:
//
//   [residue of height][residue of width][height][width]
//
// Residues are the distances of pixels from the first tap, modulo the stride: pixels of one residue
// are read by the same taps, and lie side by side, so that with any stride neighbours of dst are
// neighbouring lines. What lies between two rows of dst there is multiplied and not stored.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_PLANES_PLANE_WINDOWS_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_PLANES_PLANE_WINDOWS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "engine/kernels/planes/plane_operands.h"
#include "engine/primitives/convolution/geometry.h"
#include "engine/primitives/convolution/integer/integer_driver.h"

namespace tilewire::convolution {

// Along height and width: which residues taps have, in order, and how many pixels of a residue are
// read beside the one of the first tap.
struct WindowLines {
  std::array<std::vector<int64_t>, 2> residues;
  std::array<int64_t, 2> reach{0, 0};

  explicit WindowLines(const Geometry& geometry);
};

// Strips of whole rows of dst, as many as keep their lines in the second cache, which `planes` and
// the channels of a pixel decide. None for windows of one pixel or of several depths.
std::optional<PlaneStrips> SharedStrips(const Geometry& geometry, int planes);

// The rows, taps, channels and outputs of a convolution, and the strips that take fewer cycles
// (plane_cost.h): shared ones, or those of 32 rows whose windows are split one by one.
PlaneProductShape PlaneShapeOf(const Geometry& geometry, int planes);

// The fixed part of a convolution's source.
struct Windows {
  Geometry geometry;
  ByteStrides strides;
  int64_t strip_rows = 0;  // rows of dst in a strip, where lines are shared
};

class WindowRows final : public PlaneRows {
 public:
  using Layout = Windows;

  WindowRows(const Layout& windows, const std::byte* src) : windows_(windows), src_(src) {}

  void ForEachRun(int64_t product, int64_t row, int rows, int64_t tap,
                  absl::FunctionRef<void(const Run&)> visit) const override;
  void ForEachLine(int64_t product, int64_t row, int64_t rows,
                   absl::FunctionRef<void(const Run&)> visit) const override;

 private:
  const std::byte* Image(int64_t product) const;
  void VisitPixels(const std::byte* image, const Spatial& first_src, int first, int count,
                   absl::FunctionRef<void(const Run&)> visit) const;

  const Windows& windows_;
  const std::byte* const src_;
};

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_PLANES_PLANE_WINDOWS_H_
