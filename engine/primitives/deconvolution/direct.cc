// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/deconvolution/geometry.h"
#include "engine/primitives/deconvolution/implementations.h"
#include "engine/primitives/deconvolution/tile_generator.h"
#include "engine/threading/stop.h"

namespace tilewire::deconvolution {
namespace {

constexpr int64_t kFloatBytes = sizeof(float);
constexpr int64_t kBandRows = 8;  // of dst: a piece of work

// Outputs first, first + stride, ... along the width; `sources` are those of the first.
struct Segment {
  int64_t first, count;
  std::vector<Source> sources;
};

// The next output of a phase gets from every tap the next pixel.
bool Continues(const Segment& segment, const std::vector<Source>& sources) {
  if (sources.size() != segment.sources.size()) return false;
  for (size_t i = 0; i < sources.size(); ++i) {
    const Source& first = segment.sources[i];
    if (sources[i] != Source{first.tap, first.position + segment.count}) return false;
  }
  return true;
}

std::vector<Segment> SegmentsOf(const Axis& width) {
  std::vector<Segment> segments;
  for (int64_t phase = 0; phase < std::min(width.stride, width.out); ++phase) {
    bool begins = true;
    for (int64_t o = phase; o < width.out; o += width.stride) {
      std::vector<Source> sources = width.SourcesOf(o);
      if (!begins && Continues(segments.back(), sources)) {
        ++segments.back().count;
      } else {
        segments.push_back({o, 1, std::move(sources)});
      }
      begins = false;
    }
  }
  return segments;
}

// Immutable.
class Direct final : public Primitive {
 public:
  // By (the last group of blocks, outputs).
  using Generators = std::map<std::pair<bool, int64_t>, std::unique_ptr<const TileGenerator>>;

  Direct(PrimitiveInfo primitive_info, const DeconvolutionDesc& desc, int64_t lanes,
         int64_t max_pixels, std::vector<Segment> segments, Generators generators)
      : Primitive(std::move(primitive_info)),
        desc_(desc),
        geometry_(GeometryOf(desc)),
        lanes_(lanes),
        max_pixels_(max_pixels),
        segments_(std::move(segments)),
        generators_(std::move(generators)) {
    for (int64_t d = 0; d < geometry_.axes[0].out; ++d) {
      depths_.push_back(geometry_.axes[0].SourcesOf(d));
    }
    for (int64_t h = 0; h < geometry_.axes[1].out; ++h) {
      heights_.push_back(geometry_.axes[1].SourcesOf(h));
    }
  }

 private:
  // One row of dst of one group of output blocks.
  struct Row {
    const float *src, *weights, *bias;  // of the image and group
    float* dst;                         // of the row
    bool last;                          // group of blocks
    const std::vector<Source>*depth, *height;
  };

  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const int64_t blocks = DivUp(geometry_.oc, lanes_);
    const int64_t pieces = DivUp(blocks, TileGenerator::kMaxBlocks);
    const int64_t depths = geometry_.axes[0].out, heights = geometry_.axes[1].out;
    const int64_t bands = DivUp(heights, kBandRows);
    team.ParallelFor(
        geometry_.batch * geometry_.groups * pieces * depths * bands, [&](int64_t task) {
          const int64_t band = task % bands, d = task / bands % depths;
          const int64_t block = task / bands / depths, piece = block % pieces;
          const int64_t group = block / pieces % geometry_.groups;
          const int64_t n = block / pieces / geometry_.groups;
          Row row = FirstRow(args, n, group, piece * TileGenerator::kMaxBlocks);
          row.last = piece == pieces - 1;
          row.depth = &depths_[d];
          float* plane = row.dst + d * geometry_.axes[0].dst_stride;
          for (int64_t h = band * kBandRows; h < std::min(heights, (band + 1) * kBandRows); ++h) {
            row.height = &heights_[h];
            row.dst = plane + h * geometry_.axes[1].dst_stride;
            for (const Segment& segment : segments_) RunSegment(row, segment);
            if (threading::Stopped()) return;
          }
        });
  }

  Row FirstRow(const ExecuteArgs& args, int64_t n, int64_t group, int64_t block) const {
    Row row;
    const int group_dims = geometry_.grouped_weights ? 1 : 0;
    const int64_t src_block = group * (geometry_.ic / lanes_);
    const int64_t dst_block = group * (geometry_.oc / lanes_) + block;
    row.src = args.Get<const float>(kArgSrc) + desc_.src.offset0() + n * desc_.src.stride(0) +
              src_block * desc_.src.stride(1);
    row.weights = args.Get<const float>(kArgWeights) + desc_.weights.offset0() +
                  block * desc_.weights.stride(group_dims);
    if (group_dims == 1) row.weights += group * desc_.weights.stride(0);
    row.bias = desc_.bias.IsZero()
                   ? nullptr
                   : args.Get<const float>(kArgBias) + desc_.bias.offset0() + dst_block * lanes_;
    row.dst = args.Get<float>(kArgDst) + desc_.dst.offset0() + n * desc_.dst.stride(0) +
              dst_block * desc_.dst.stride(1);
    return row;
  }

  void RunSegment(const Row& row, const Segment& segment) const {
    const Axis &depth = geometry_.axes[0], &height = geometry_.axes[1], &width = geometry_.axes[2];
    absl::InlinedVector<TapArgs, 27> taps;
    for (const Source& d : *row.depth) {
      for (const Source& h : *row.height) {
        const float* src = row.src + d.position * depth.src_stride + h.position * height.src_stride;
        const float* weights =
            row.weights + d.tap * depth.weights_stride + h.tap * height.weights_stride;
        for (const Source& w : segment.sources) {
          taps.push_back({src + w.position * lanes_, weights + w.tap * width.weights_stride});
        }
      }
    }
    for (int64_t done = 0; done < segment.count; done += max_pixels_) {
      const int64_t pixels = std::min(max_pixels_, segment.count - done);
      const TileArgs args = {taps.data(), static_cast<int64_t>(taps.size()), row.bias,
                             row.dst + (segment.first + done * width.stride) * lanes_};
      generators_.at({row.last, pixels})->entry<TileGenerator::Function>()(&args);
      for (TapArgs& tap : taps) tap.src += pixels * lanes_;
    }
  }

  const DeconvolutionDesc desc_;
  const Geometry geometry_;
  const int64_t lanes_, max_pixels_;
  const std::vector<Segment> segments_;                // of a row
  std::vector<std::vector<Source>> depths_, heights_;  // by output
  const Generators generators_;
};

// "aBcd16b" for rank 4.
std::string BlockedPattern(int rank, int64_t lanes) {
  return absl::StrCat("aB", std::string("cde").substr(0, rank - 2), lanes, "b");
}

std::string WeightsPattern(const DeconvolutionDesc& desc, int64_t lanes) {
  const std::string spatial = std::string("cdefg").substr(0, desc.src.rank() - 2);
  if (desc.weights.rank() == desc.src.rank()) {
    return absl::StrCat("AB", spatial, lanes, "b", lanes, "a");
  }
  const std::string grouped = std::string("defgh").substr(0, desc.src.rank() - 2);
  return absl::StrCat("aBC", grouped, lanes, "c", lanes, "b");
}

absl::Status RequireBlocked(const MemoryDesc& md, int64_t lanes) {
  const int width = md.rank() - 1;
  if (md.inner_blocks() != InnerBlocks{{1, lanes}} ||
      (md.dim(width) > 1 && md.stride(width) != lanes)) {
    return absl::UnimplementedError(
        absl::StrCat("takes channels in blocks of ", lanes, ", not ", md.ToString()));
  }
  return absl::OkStatus();
}

TileConfig ConfigOf(const DeconvolutionDesc& desc, const PostOps& post_ops, const VectorUnit& unit,
                    bool last, int64_t pixels) {
  const int64_t lanes = unit.lanes();
  const Geometry geometry = GeometryOf(desc);
  const int group_dims = geometry.grouped_weights ? 1 : 0;
  const int64_t blocks = DivUp(geometry.oc, lanes);
  TileConfig config{.epilogue = {.unit = unit}};
  config.ic_blocks = geometry.ic / lanes;
  config.tail_channels = static_cast<int>(geometry.ic % lanes);
  config.src_block_bytes = desc.src.stride(1) * kFloatBytes;
  config.weights_oc_block_bytes = desc.weights.stride(group_dims) * kFloatBytes;
  config.weights_ic_block_bytes = desc.weights.stride(group_dims + 1) * kFloatBytes;
  EpilogueConfig& epilogue = config.epilogue;
  epilogue.blocks = static_cast<int>(last ? (blocks - 1) % TileGenerator::kMaxBlocks + 1
                                          : TileGenerator::kMaxBlocks);
  epilogue.pixels = static_cast<int>(pixels);
  epilogue.dst_block_bytes = desc.dst.stride(1) * kFloatBytes;
  epilogue.dst_pixel_bytes = geometry.axes[2].stride * lanes * kFloatBytes;
  epilogue.bias = !desc.bias.IsZero();
  epilogue.tail_lanes = last ? static_cast<int>(geometry.oc % lanes) : 0;
  epilogue.post_ops = post_ops;
  return config;
}

}  // namespace

absl::StatusOr<DeconvolutionDesc> ResolveDirect(const DeconvolutionDesc& desc,
                                                const Attributes& attributes,
                                                const ImplementationFacts& facts) {
  ABSL_RETURN_IF_ERROR(RequireForwardF32(desc, attributes));
  const int64_t lanes = VectorUnit::Of(facts.isa).lanes();
  DeconvolutionDesc resolved = desc;
  const std::string blocked = BlockedPattern(desc.src.rank(), lanes);
  ABSL_ASSIGN_OR_RETURN(resolved.src, OrPattern(desc.src, blocked));
  ABSL_ASSIGN_OR_RETURN(resolved.dst, OrPattern(desc.dst, blocked));
  ABSL_ASSIGN_OR_RETURN(resolved.bias, OrPlain(desc.bias));
  ABSL_RETURN_IF_ERROR(RequireBlocked(resolved.src, lanes));
  ABSL_RETURN_IF_ERROR(RequireBlocked(resolved.dst, lanes));
  ABSL_ASSIGN_OR_RETURN(
      const MemoryDesc packed,
      MemoryDesc::CreatePattern(desc.weights.dims(), DataType::kF32, WeightsPattern(desc, lanes)));
  if (resolved.weights.IsAny()) resolved.weights = packed;
  if (resolved.weights != packed) {
    return absl::UnimplementedError(absl::StrCat("weights are not ", packed.ToString()));
  }
  const Geometry geometry = GeometryOf(resolved);
  if (geometry.groups > 1 && (geometry.ic % lanes != 0 || geometry.oc % lanes != 0)) {
    return absl::UnimplementedError(absl::StrCat("takes groups of multiples of ", lanes,
                                                 " channels, not of ", geometry.ic, " and ",
                                                 geometry.oc));
  }
  if (!resolved.bias.IsZero() && resolved.bias.dim(0) > 1 && resolved.bias.stride(0) != 1) {
    return absl::UnimplementedError("bias is not dense");
  }
  // Displacements inside a tile are 32-bit immediates.
  constexpr int64_t kLargest = std::numeric_limits<int32_t>::max() / 8;
  if (resolved.src.stride(1) > kLargest || resolved.dst.stride(1) > kLargest ||
      packed.PaddedElementCount() > kLargest || geometry.axes[2].stride > (1 << 16)) {
    return absl::UnimplementedError("strides over 28 bits");
  }
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateDirect(const DeconvolutionDesc& desc,
                                                        const Attributes& attributes,
                                                        const ImplementationFacts& facts) {
  const VectorUnit unit = VectorUnit::Of(facts.isa);
  const int64_t lanes = unit.lanes();
  const PostOps& post_ops = attributes.post_ops;
  const int64_t max_pixels = TileGenerator::MaxPixels(unit, post_ops);
  const Geometry geometry = GeometryOf(desc);
  const bool several = geometry.oc > TileGenerator::kMaxBlocks * lanes;
  std::vector<Segment> segments = SegmentsOf(geometry.axes[2]);
  PrimitiveInfo info = InfoOf(desc, attributes, facts);
  Direct::Generators generators;
  for (const Segment& segment : segments) {
    for (int64_t pixels : {std::min(max_pixels, segment.count), segment.count % max_pixels}) {
      for (bool last : {false, true}) {
        if (pixels == 0 || (!last && !several) || generators.count({last, pixels}) > 0) continue;
        ABSL_ASSIGN_OR_RETURN(
            auto generator,
            jit::Compile<TileGenerator>(facts.name, ConfigOf(desc, post_ops, unit, last, pixels)));
        info.code_bytes += static_cast<int64_t>(generator->code_bytes());
        generators[{last, pixels}] = std::move(generator);
      }
    }
  }
  return std::make_unique<Direct>(std::move(info), desc, lanes, max_pixels, std::move(segments),
                                  std::move(generators));
}

}  // namespace tilewire::deconvolution
