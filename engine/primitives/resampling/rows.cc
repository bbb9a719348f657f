// SPDX-License-Identifier: Apache-2.0
//
// The padded tail needs no care: the tail of src is zero, and weighted sums of zeros are.
#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/resampling/implementations.h"
#include "engine/primitives/resampling/row_generator.h"
#include "engine/primitives/single_source.h"

namespace tilewire::resampling {
namespace {

// One spatial dimension; those that a tensor lacks have one output, which is the input.
struct Axis {
  Samples samples;
  int64_t src_stride = 0, dst_stride = 0;
};

// `back` counts from W: 0 is width, 1 height, 2 depth.
Axis AxisOf(const ResamplingDesc& desc, int back) {
  const int d = desc.src.rank() - 1 - back;
  if (d < 2) return {};
  return {Samples(desc, d), desc.src.stride(d), desc.dst.stride(d)};
}

// The inputs that the generated code reads for neighbouring outputs of a row.
struct WidthTable {
  // A whole number of vectors.
  explicit WidthTable(int64_t outputs) {
    for (int side = 0; side < 2; ++side) {
      offsets[side].resize(RoundUp(outputs, 16));
      weights[side].resize(RoundUp(outputs, 16));
    }
  }
  // For the outputs [begin, end).
  void Fill(const Axis& width, int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      const Sample sample = width.samples[o];
      for (int side = 0; side < 2; ++side) {
        offsets[side][o - begin] = static_cast<int32_t>(sample.index[side] * width.src_stride * 4);
        weights[side][o - begin] = sample.weight[side];
      }
    }
  }
  std::vector<int32_t> offsets[2];
  std::vector<float> weights[2];
};

// A piece of work computes this many elements or more.
constexpr int64_t kElementsAtOnce = 16384;
// A row whose samples are not tabled is computed in parts of this many outputs.
constexpr int64_t kOutputsAtOnce = 4096;

// Immutable. A piece of work is some rows of one depth of one cell, or one part of these rows where
// they are long.
class Rows final : public SingleSource<float> {
 public:
  Rows(PrimitiveInfo primitive_info, const ResamplingDesc& desc, const RowConfig& config,
       std::unique_ptr<const RowGenerator> generator)
      : SingleSource(std::move(primitive_info)),
        desc_(desc),
        sides_(config.sides),
        cells_(desc.dst.padded_dims()[1] / config.cell),
        depth_(AxisOf(desc, 2)),
        height_(AxisOf(desc, 1)),
        width_(AxisOf(desc, 0)),
        outputs_(width_.samples.tabled() ? width_.samples.size() : kOutputsAtOnce),
        rows_(std::max<int64_t>(1, kElementsAtOnce / std::max<int64_t>(1, outputs_ * config.cell))),
        table_(width_.samples.tabled() ? outputs_ : 0),
        generator_(std::move(generator)) {
    if (width_.samples.tabled()) table_.Fill(width_, 0, outputs_);
  }

 private:
  struct Piece {
    const float* src;  // at the cell, of the first pixel
    float* dst;
    int64_t depth, first_output, outputs;
  };

  void RunOn(const float* src, float* dst, const threading::Team& team) const override {
    if (desc_.dst.ElementCount() == 0) return;
    const int64_t depths = depth_.samples.size(), heights = height_.samples.size();
    const int64_t parts = DivUp(width_.samples.size(), outputs_), bands = DivUp(heights, rows_);
    // The stride between cells is that of channels, or of channel blocks.
    team.ParallelFor(desc_.dst.dim(0) * cells_ * depths * bands * parts, [&](int64_t task) {
      const int64_t part = task % parts, band = task / parts % bands, d = task / parts / bands;
      const int64_t cell = d / depths % cells_, n = d / depths / cells_;
      const int64_t first = part * outputs_;
      const Piece piece = {.src = src + n * desc_.src.stride(0) + cell * desc_.src.stride(1),
                           .dst = dst + n * desc_.dst.stride(0) + cell * desc_.dst.stride(1),
                           .depth = d % depths,
                           .first_output = first,
                           .outputs = std::min(outputs_, width_.samples.size() - first)};
      RunRows(piece, band * rows_, std::min(heights, (band + 1) * rows_));
    });
  }

  void RunRows(const Piece& piece, int64_t begin, int64_t end) const {
    if (width_.samples.tabled()) {
      for (int64_t h = begin; h < end; ++h) RunRow(piece, h, table_);
      return;
    }
    WidthTable table(piece.outputs);
    table.Fill(width_, piece.first_output, piece.first_output + piece.outputs);
    for (int64_t h = begin; h < end; ++h) RunRow(piece, h, table);
  }

  void RunRow(const Piece& piece, int64_t h, const WidthTable& table) const {
    const Sample depth = depth_.samples[piece.depth], height = height_.samples[h];
    RowArgs args = {};
    args.dst = piece.dst + piece.depth * depth_.dst_stride + h * height_.dst_stride +
               piece.first_output * width_.dst_stride;
    args.outputs = piece.outputs;
    int row = 0;
    for (int i = 0; i < DepthSides(); ++i) {
      for (int j = 0; j < HeightSides(); ++j) {
        args.rows[row] =
            piece.src + depth.index[i] * depth_.src_stride + height.index[j] * height_.src_stride;
        args.weights[row++] = depth.weight[i] * height.weight[j];
      }
    }
    for (int side = 0; side < sides_; ++side) {
      args.offsets[side] = table.offsets[side].data();
      args.sides[side] = table.weights[side].data();
    }
    generator_->entry<RowGenerator::Function>()(&args);
  }

  int DepthSides() const { return sides_ == 2 && desc_.src.rank() > 4 ? 2 : 1; }
  int HeightSides() const { return sides_ == 2 && desc_.src.rank() > 3 ? 2 : 1; }

  const ResamplingDesc desc_;
  const int sides_;
  const int64_t cells_;
  const Axis depth_, height_, width_;
  const int64_t outputs_, rows_;  // of a piece, at most
  WidthTable table_;              // of the whole row, where its samples are tabled
  const std::unique_ptr<const RowGenerator> generator_;
};

}  // namespace

int64_t CellOf(const MemoryDesc& md) {
  if (!md.inner_blocks().empty()) return md.BlockSize(1);
  return md.stride(1) == 1 ? md.dim(1) : 1;
}

absl::Status RequireCells(const MemoryDesc& md, int64_t cell) {
  for (const InnerBlock& block : md.inner_blocks()) {
    if (block.dim != 1) return Unimplemented("blocked on another axis than 1");
  }
  const int width = md.rank() - 1;
  if (CellOf(md) != cell || (md.dim(width) > 1 && md.stride(width) != cell)) {
    return Unimplemented(md.ToString(), ": pixels of a row do not follow each other");
  }
  if (md.dim(width) * cell > std::numeric_limits<int32_t>::max() / 8) {
    return Unimplemented("rows beyond 31 bits");
  }
  return absl::OkStatus();
}

absl::StatusOr<ResamplingDesc> ResolveRows(const Request<ResamplingDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(ResamplingDesc resolved, ResolveReference(request));
  const int64_t cell = CellOf(resolved.dst);
  if (cell == 0) return Unimplemented("there are no channels");  // it is divided by
  ABSL_RETURN_IF_ERROR(RequireCells(resolved.src, cell));
  ABSL_RETURN_IF_ERROR(RequireCells(resolved.dst, cell));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateRows(const Request<ResamplingDesc>& request) {
  const ResamplingDesc& desc = request.desc;
  RowConfig config{.unit = VectorUnit::Of(request.facts.isa)};
  config.cell = CellOf(desc.dst);
  if (desc.algorithm == ResamplingAlgorithm::kLinear) {
    config.sides = 2;
    config.rows = 1 << (desc.src.rank() - 3);
  }
  ABSL_ASSIGN_OR_RETURN(auto generator, jit::Compile<RowGenerator>(request.facts.name, config));
  return std::make_unique<Rows>(WithCode(InfoOf(request), *generator), desc, config,
                                std::move(generator));
}

}  // namespace tilewire::resampling
