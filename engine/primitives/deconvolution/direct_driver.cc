// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/deconvolution/direct_driver.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "engine/base/checked_math.h"
#include "engine/base/range.h"
#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/deconvolution/geometry.h"
#include "engine/primitives/deconvolution/tile_loop.h"
#include "engine/threading/stop.h"

namespace tilewire::deconvolution {
namespace {

constexpr int64_t kBandRows = 8;  // of dst: a piece of work

// Outputs first, first + stride, ... along the width; `sources` are those of the first.
struct Segment {
  int64_t first, count;
  std::vector<Source> sources;
};

// Whether `sources` are, from the same taps, those that come `distance` after `first`.
bool Continues(const std::vector<Source>& first, int64_t distance,
               const std::vector<Source>& sources) {
  if (sources.size() != first.size()) return false;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i] != Source{first[i].tap, first[i].position + distance}) return false;
  }
  return true;
}

std::vector<Segment> SegmentsOf(const Axis& width) {
  std::vector<Segment> segments;
  for (int64_t phase = 0; phase < std::min(width.stride, width.out); ++phase) {
    bool begins = true;
    for (int64_t o = phase; o < width.out; o += width.stride) {
      std::vector<Source> sources = width.SourcesOf(o);
      if (!begins && Continues(segments.back().sources, segments.back().count, sources)) {
        ++segments.back().count;
      } else {
        segments.push_back({o, 1, std::move(sources)});
      }
      begins = false;
    }
  }
  return segments;
}

// The groups of output blocks.
int64_t Pieces(const Geometry& geometry, const Blocking& blocking) {
  return DivUp(DivUp(geometry.oc, blocking.dst_lanes), blocking.tile_blocks);
}

// A segment's tiles are as equal as they can be, since the sums of a short tile wait for each
// other: `outputs` of it are in tiles of `pixels`, and the rest in tiles of one pixel less.
struct Cut {
  int64_t pixels, outputs;
};
Cut CutOf(const Blocking& blocking, const Segment& segment) {
  const int64_t tiles = DivUp(segment.count, blocking.tile_pixels);
  const int64_t least = segment.count / tiles, longer = segment.count % tiles;
  return longer == 0 ? Cut{least, segment.count} : Cut{least + 1, longer * (least + 1)};
}

// Whether a segment, beside a border, is computed column by column.
bool TakesColumns(const Blocking& blocking, const Segment& segment) {
  constexpr int64_t kFewestOutputs = 3;
  return blocking.has_columns && segment.count < kFewestOutputs;
}

// The sources of all outputs along an axis.
using AxisSources = std::vector<std::vector<Source>>;
AxisSources AllSources(const Axis& axis) {
  AxisSources sources;
  for (int64_t o = 0; o < axis.out; ++o) sources.push_back(axis.SourcesOf(o));
  return sources;
}

// Calls visit(first, count) for rows `stride` apart, `most` at a time, that the same taps reach,
// each of them one pixel further.
void ForEachColumn(const AxisSources& rows, const Range& band, int64_t stride, int64_t most,
                   absl::FunctionRef<void(int64_t first, int64_t count)> visit) {
  const int64_t end = band.begin + band.size;
  for (int64_t first = band.begin; first < end;) {
    int64_t count = 1;
    while (count < most && first + count * stride < end &&
           Continues(rows[first], count, rows[first + count * stride]))
      ++count;
    visit(first, count);
    first += count * stride;
  }
}

// Immutable.
class Direct final : public Primitive {
 public:
  using Generators = std::map<TileShape, std::unique_ptr<const jit::Generator>>;

  Direct(PrimitiveInfo primitive_info, const DeconvolutionDesc& desc, const Blocking& blocking,
         std::vector<Segment> segments, Generators generators)
      : Primitive(std::move(primitive_info)),
        desc_(desc),
        geometry_(GeometryOf(desc)),
        blocking_(blocking),
        segments_(std::move(segments)),
        depths_(AllSources(geometry_.axes[0])),
        heights_(AllSources(geometry_.axes[1])),
        generators_(std::move(generators)) {}

 private:
  // One row of dst of one group of output blocks.
  struct Row {
    const float *src, *weights, *bias;  // of the image and group
    float* dst;                         // of the row
    bool last;                          // group of blocks
    const std::vector<Source>*depth, *height;
  };

  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const int64_t pieces = Pieces(geometry_, blocking_);
    const int64_t depths = geometry_.axes[0].out;
    const int64_t bands = DivUp(geometry_.axes[1].out, kBandRows);
    team.ParallelFor(geometry_.batch * geometry_.groups * pieces * depths * bands,
                     [&](int64_t task) {
                       const int64_t band = task % bands, d = task / bands % depths;
                       const int64_t block = task / bands / depths, piece = block % pieces;
                       const int64_t group = block / pieces % geometry_.groups;
                       const int64_t n = block / pieces / geometry_.groups;
                       Row row = FirstRow(args, n, group, piece * blocking_.tile_blocks);
                       row.last = piece == pieces - 1;
                       row.depth = &depths_[d];
                       row.dst += d * geometry_.axes[0].dst_stride;
                       RunBand(row, band * kBandRows);
                     });
  }

  // `first` is the place of row 0.
  void RunBand(const Row& first, int64_t begin) const {
    const Axis& height = geometry_.axes[1];
    const int64_t end = std::min(height.out, begin + kBandRows);
    const int64_t step = blocking_.phase_by_phase ? height.stride : end - begin;
    const auto row_at = [&](int64_t h) {
      Row row = first;
      row.height = &heights_[h];
      row.dst += h * height.dst_stride;
      return row;
    };
    for (int64_t phase = begin; phase < std::min(end, begin + step); ++phase) {
      for (const Segment& segment : segments_) {
        if (TakesColumns(blocking_, segment)) {
          ForEachColumn(heights_, {phase, end - phase}, step, blocking_.tile_pixels,
                        [&](int64_t h, int64_t count) { RunColumns(row_at(h), segment, count); });
        } else {
          for (int64_t h = phase; h < end; h += step) {
            if (!blocking_.merges_rows || h % height.stride == 0) RunSegment(row_at(h), segment);
          }
        }
        if (threading::Stopped()) return;
      }
    }
  }

  Row FirstRow(const ExecuteArgs& args, int64_t n, int64_t group, int64_t block) const {
    Row row;
    const int group_dims = geometry_.grouped_weights ? 1 : 0;
    const int64_t src_block = group * (geometry_.ic / blocking_.src_lanes);
    const int64_t dst_block = group * (geometry_.oc / blocking_.dst_lanes) + block;
    row.src = First<const float>(args, kArgSrc) + n * desc_.src.stride(0) +
              src_block * desc_.src.stride(1);
    row.weights = First<const float>(args, kArgWeights) + block * desc_.weights.stride(group_dims);
    if (group_dims == 1) row.weights += group * desc_.weights.stride(0);
    row.bias = First<const float>(args, kArgBias);
    if (row.bias != nullptr) row.bias += dst_block * blocking_.dst_lanes;
    row.dst =
        First<float>(args, kArgDst) + n * desc_.dst.stride(0) + dst_block * desc_.dst.stride(1);
    return row;
  }

  using Taps = absl::InlinedVector<TapArgs, 27>;
  Taps TapsOf(const Row& row, const Segment& segment) const {
    const Axis &depth = geometry_.axes[0], &height = geometry_.axes[1], &width = geometry_.axes[2];
    Taps taps;
    for (const Source& d : *row.depth) {
      for (const Source& h : *row.height) {
        const float* src = row.src + d.position * depth.src_stride + h.position * height.src_stride;
        const float* weights =
            row.weights + d.tap * depth.weights_stride + h.tap * height.weights_stride;
        for (const Source& w : segment.sources) {
          taps.push_back(
              {src + w.position * blocking_.src_lanes, weights + w.tap * width.weights_stride});
        }
      }
    }
    return taps;
  }

  static TileArgs ArgsOf(const Taps& taps, const Row& row, float* dst) {
    return {taps.data(), static_cast<int64_t>(taps.size()), {}, row.bias, dst};
  }

  void RunSegment(const Row& row, const Segment& segment) const {
    Taps taps = TapsOf(row, segment);
    TileArgs tiles = ArgsOf(taps, row, row.dst + segment.first * blocking_.dst_lanes);
    const Cut cut = CutOf(blocking_, segment);
    RunTiles({row.last, /*is_column=*/false, cut.pixels}, cut.outputs, &tiles);
    for (TapArgs& tap : taps) tap.src += cut.outputs * blocking_.src_lanes;
    tiles.dst += cut.outputs * geometry_.axes[2].stride * blocking_.dst_lanes;
    RunTiles({row.last, /*is_column=*/false, cut.pixels - 1}, segment.count - cut.outputs, &tiles);
  }

  // The outputs of a segment in `count` rows, of which `row` is the first.
  void RunColumns(const Row& row, const Segment& segment, int64_t count) const {
    Taps taps = TapsOf(row, segment);
    TileArgs tile = ArgsOf(taps, row, row.dst + segment.first * blocking_.dst_lanes);
    for (int64_t column = 0; column < segment.count; ++column) {
      RunTiles({row.last, /*is_column=*/true, count}, count, &tile);
      for (TapArgs& tap : taps) tap.src += blocking_.src_lanes;
      tile.dst += geometry_.axes[2].stride * blocking_.dst_lanes;
    }
  }

  // `outputs` of a phase.
  void RunTiles(const TileShape& shape, int64_t outputs, TileArgs* args) const {
    if (outputs == 0) return;
    args->tile_count = outputs / shape.pixels;
    generators_.find(shape)->second->entry<TileFunction>()(args);
  }

  const DeconvolutionDesc desc_;
  const Geometry geometry_;
  const Blocking blocking_;
  const std::vector<Segment> segments_;  // of a row
  const AxisSources depths_, heights_;
  const Generators generators_;
};

// The shapes of all tiles of `segments`.
std::set<TileShape> ShapesOf(const Geometry& geometry, const Blocking& blocking,
                             const std::vector<Segment>& segments) {
  const Axis& height = geometry.axes[1];
  const AxisSources heights = AllSources(height);
  std::set<TileShape> shapes;
  for (const Segment& segment : segments) {
    if (!TakesColumns(blocking, segment)) {
      const Cut cut = CutOf(blocking, segment);
      shapes.insert({/*last=*/true, /*is_column=*/false, cut.pixels});
      if (cut.outputs < segment.count)
        shapes.insert({/*last=*/true, /*is_column=*/false, cut.pixels - 1});
      continue;
    }
    for (int64_t begin = 0; begin < height.out; begin += kBandRows) {
      const int64_t rows = std::min(kBandRows, height.out - begin);
      for (int64_t phase = 0; phase < std::min(rows, height.stride); ++phase)
        ForEachColumn(heights, {begin + phase, rows - phase}, height.stride, blocking.tile_pixels,
                      [&](int64_t, int64_t count) {
                        shapes.insert({/*last=*/true, /*is_column=*/true, count});
                      });
    }
  }
  return shapes;
}

// Displacements from row to row are 32-bit immediates, too.
bool FitsColumns(const Geometry& geometry, const Blocking& blocking) {
  constexpr int64_t kLargest = int64_t{1} << 28;
  const Axis& height = geometry.axes[1];
  const int64_t rows = std::min(kBandRows, blocking.tile_pixels);
  return height.src_stride <= kLargest / rows &&
         height.dst_stride <= kLargest / rows / std::min(height.stride, kLargest);
}

}  // namespace

std::string BlockedPattern(int rank, int64_t lanes) {
  return absl::StrCat("aB", std::string("cde").substr(0, rank - 2), lanes, "b");
}

absl::Status RequireBlocked(const MemoryDesc& md, int64_t lanes) {
  const int width = md.rank() - 1;
  if (md.inner_blocks() != InnerBlocks{{1, lanes}} ||
      (md.dim(width) > 1 && md.stride(width) != lanes)) {
    return Unimplemented("takes channels in blocks of ", lanes, ", not ", md.ToString());
  }
  return absl::OkStatus();
}

absl::StatusOr<DeconvolutionDesc> ResolveTiles(const DeconvolutionDesc& desc,
                                               const Layouts& layouts) {
  const int64_t lanes = layouts.lanes;
  DeconvolutionDesc resolved = desc;
  ABSL_ASSIGN_OR_RETURN(resolved.src, OrPattern(desc.src, BlockedPattern(desc.src.rank(), lanes)));
  ABSL_ASSIGN_OR_RETURN(resolved.dst, OrPattern(desc.dst, layouts.dst));
  ABSL_ASSIGN_OR_RETURN(resolved.bias, OrPlain(desc.bias));
  ABSL_RETURN_IF_ERROR(RequireBlocked(resolved.src, lanes));
  ABSL_ASSIGN_OR_RETURN(
      const MemoryDesc packed,
      MemoryDesc::CreatePattern(desc.weights.dims(), DataType::kF32, layouts.weights));
  ABSL_ASSIGN_OR_RETURN(resolved, WithWeights(std::move(resolved), packed));
  if (!resolved.bias.IsZero() && resolved.bias.dim(0) > 1 && resolved.bias.stride(0) != 1) {
    return Unimplemented("bias is not dense");
  }
  // Displacements inside a tile are 32-bit immediates.
  constexpr int64_t kLargest = int64_t{1} << 28;
  if (resolved.src.stride(1) > kLargest || resolved.dst.stride(1) > kLargest ||
      packed.PaddedElementCount() > kLargest || GeometryOf(resolved).axes[2].stride > (1 << 16)) {
    return Unimplemented("strides over 28 bits");
  }
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateDriver(PrimitiveInfo info,
                                                        const DeconvolutionDesc& desc,
                                                        const Blocking& requested,
                                                        GenerateTile generate) {
  const Geometry geometry = GeometryOf(desc);
  Blocking blocking = requested;
  blocking.has_columns = requested.has_columns && requested.phase_by_phase &&
                         !requested.merges_rows && FitsColumns(geometry, requested);
  std::vector<Segment> segments = SegmentsOf(geometry.axes[2]);
  if (blocking.merges_columns) {
    std::erase_if(segments, [&](const Segment& segment) {
      return segment.first % geometry.axes[2].stride != 0;
    });
  }
  const bool several = Pieces(geometry, blocking) > 1;
  Direct::Generators generators;
  for (TileShape shape : ShapesOf(geometry, blocking, segments)) {
    for (bool last : {false, true}) {
      if (!last && !several) continue;
      shape.last = last;
      ABSL_ASSIGN_OR_RETURN(auto generator, generate(shape));
      info.code_bytes += static_cast<int64_t>(generator->code_bytes());
      generators[shape] = std::move(generator);
    }
  }
  return std::make_unique<Direct>(std::move(info), desc, blocking, std::move(segments),
                                  std::move(generators));
}

}  // namespace tilewire::deconvolution
