// SPDX-License-Identifier: Apache-2.0
//
// The operands of products by planes of bf16 (plane_product.h) as they lie in memory.
#ifndef ENGINE_KERNELS_PLANES_PLANE_OPERANDS_H_
#define ENGINE_KERNELS_PLANES_PLANE_OPERANDS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "engine/base/checked_math.h"
#include "engine/base/precision.h"
#include "engine/kernels/attributes.h"
#include "engine/memory/data_type.h"
#include "engine/memory/plane_layout.h"

namespace tilewire {

// How many planes the products of a precision take.
constexpr int PlanesFor(Precision precision) { return 3 - static_cast<int>(precision); }
static_assert(PlanesFor(Precision::kExact) == 3 && PlanesFor(Precision::kFast) == 2 &&
              PlanesFor(Precision::kBf16) == 1);

inline constexpr int kPlaneRows = 32;  // of a tile

// How the rows of a product are cut into strips, whose source is split at a time, and where the
// lines of a strip are: of each step of 32 channels, `lines` lines of every plane.
struct PlaneStrips {
  int64_t rows = kPlaneRows;   // of dst; the last strip has the rest
  int64_t lines = kPlaneRows;  // those that a tile reads after its rows among them
  // Where windows overlap, a line is a pixel of src, in as many windows as it is part of. The first
  // row's line of each tap, from which that of the others is equally far away: rows follow each
  // other as their lines do, but `row_outputs` rows are `row_lines` lines. Empty: each tap has
  // lines of its own, one per row.
  std::vector<int64_t> taps = {};
  int64_t row_outputs = kPlaneRows, row_lines = kPlaneRows;

  bool AreShared() const { return !taps.empty(); }
  // From the first row of a strip on: how many lines there are to the end of the last of `rows`
  // rows, and how many rows begin before a line.
  int64_t LinesOf(int64_t rows_of_strip) const {
    const int64_t last = rows_of_strip - 1;
    return last / row_outputs * row_lines + last % row_outputs + 1;
  }
  int64_t RowsBefore(int64_t line) const {
    return line / row_lines * row_outputs + std::min(line % row_lines, row_outputs);
  }
};

// Strides are bytes. Channels come in blocks of 16, or of 32 in tensors of bf16, and those of a
// block of src are neighbours.
struct PlaneProductShape {
  int planes = 1;  // 1 to 3
  // Either may be kBf16 where there is one plane. Of a src of bf16 blocks are padded with zeros.
  DataType src_type = DataType::kF32, dst_type = DataType::kF32;
  int64_t rows = 0, taps = 1, channels = 0, outputs = 0;
  int64_t src_block = 64;  // of channels, which are whole blocks if there are several taps
  // For a src of bf16 without taps whose rows are all at one distance: that distance. The rows are
  // read where they lie.
  int64_t src_row = 0;
  int64_t weights_channel = 64, weights_block = 1024, weights_tap = 0;
  // They are planes (engine/memory/plane_layout.h) of all weights of the product; their strides
  // count for f32 only.
  bool weights_are_split = false;
  int64_t weights_output = 4, weights_output_block = 0;  // block: of 16 outputs
  bool weights_are_padded = true;                        // with zeros to whole blocks of outputs
  int64_t dst_row = 0, dst_block = 64;
  bool packed_dst = true;  // else it is padded to whole blocks, with zeros
  bool bias = false;
  PostOps post_ops = {};
  PlaneStrips strips = {};

  int64_t FlatChannels() const { return taps * channels; }
  PlaneLayout WeightsLayout(int64_t matrices) const {
    return {planes, matrices, outputs, taps, channels};
  }
  bool ReadsInPlace() const { return src_row != 0; }
  // From the first output to the first one of a block of 16.
  int64_t DstBlockOffset(int64_t block) const {
    if (dst_type == DataType::kF32) return block * dst_block;
    return block / 2 * dst_block + block % 2 * (kPlaneLineBytes / 2);
  }
  int64_t Strips() const { return DivUp(rows, strips.rows); }
  int64_t RowsOfStrip(int64_t strip) const {
    return std::min(strips.rows, rows - strip * strips.rows);
  }
};

// Where the source of some rows lies: that of a convolution is a window of an image.
class PlaneRows {
 public:
  // Neighbouring rows of a tap, or lines, `row_bytes` apart; src is null where they are zeros.
  struct Run {
    int first = 0, rows = 0;  // counted from the first that was asked for
    const std::byte* src = nullptr;
    int64_t row_bytes = 0;
  };
  virtual ~PlaneRows() = default;
  // Visits rows [row, row + rows) of a product for one tap, in order.
  virtual void ForEachRun(int64_t product, int64_t row, int rows, int64_t tap,
                          absl::FunctionRef<void(const Run&)> visit) const = 0;
  // Visits the lines of a strip that begins with `row`, where they are shared (PlaneStrips), but
  // for those that no row reads.
  virtual void ForEachLine(int64_t /*product*/, int64_t /*row*/, int64_t /*rows*/,
                           absl::FunctionRef<void(const Run&)> /*visit*/) const {}
};

// The rows of one product, at one distance, without taps.
class DensePlaneRows final : public PlaneRows {
 public:
  using Layout = int64_t;  // bytes from row to row

  DensePlaneRows(const Layout& row_bytes, const std::byte* src)
      : row_bytes_(row_bytes), src_(src) {}
  void ForEachRun(int64_t, int64_t row, int rows, int64_t,
                  absl::FunctionRef<void(const Run&)> visit) const override {
    visit({.first = 0, .rows = rows, .src = src_ + row * row_bytes_, .row_bytes = row_bytes_});
  }

 private:
  const int64_t row_bytes_;
  const std::byte* const src_;
};

struct PlaneOperands {
  const PlaneRows* src = nullptr;
  const std::byte *weights = nullptr, *bias = nullptr;
  std::byte* dst = nullptr;
};

// Offsets of the weights of one product or several, in bytes. Planes follow each other in the order
// in which a product is given its weights, and need no offset.
struct PlaneWeights {
  int64_t offset = 0, bias = 0;
};

}  // namespace tilewire

#endif  // ENGINE_KERNELS_PLANES_PLANE_OPERANDS_H_
