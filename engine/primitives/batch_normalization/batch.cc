// SPDX-License-Identifier: Apache-2.0
//
// Statistics of the batch, and the elements normalized by them. A piece of a block of channels is
// read twice, the second time from the first cache: for its mean, and for the squares of what
// differs from it. Pieces are merged in their order, in double, as Chan, Golub and LeVeque have it
// ("Updating formulae and a pairwise algorithm for computing sample variances", 1979): nothing
// cancels, whatever the mean, and bits do not depend on threads. Another pass normalizes. Where
// blocks lie apart, a block has both passes before the next one, the second from its last piece on,
// so that caches hold much of what it reads again; a large dst is written past them.
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/jit/store_forms.h"
#include "engine/primitives/batch_normalization/implementations.h"
#include "engine/primitives/batch_normalization/pass_generator.h"
#include "engine/primitives/batch_normalization/pixel_blocks.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/driven_primitive.h"

namespace tilewire::batch_normalization {
namespace {

// The statistics of the channels of a block, piece by piece.
class Merged {
 public:
  // A piece of `pixels`, as kStatistics found it.
  void Add(double pixels, const float* found, int64_t lanes) {
    const double all = count_ + pixels, over_pixels = 1 / pixels;
    const double part = pixels / all, weight = count_ * part;
    for (int64_t first = 0; first < lanes; first += PixelBlocks::kLeastLanes) {
      for (int64_t i = 0; i < PixelBlocks::kLeastLanes; ++i) {  // a count that becomes vectors
        const int64_t lane = first + i;
        const double rest = found[lanes + lane];  // that the rounded mean leaves
        const double step = found[lane] + rest * over_pixels - mean_[lane];
        const double squares = found[2 * lanes + lane] - rest * rest * over_pixels;
        squares_[lane] += std::max(squares, 0.0) + step * step * weight;
        mean_[lane] += step * part;
      }
    }
    count_ = all;
  }
  double mean(int64_t lane) const { return mean_[lane]; }
  double variance(int64_t lane) const { return squares_[lane] / count_; }

 private:
  double count_ = 0, mean_[PixelBlocks::kMostLanes] = {}, squares_[PixelBlocks::kMostLanes] = {};
};

struct BatchDriver {
  void Run(const DrivenRun& run) const {
    auto* const found = reinterpret_cast<float*>(run.scratchpad);
    float* const lines = found + blocks.blocks() * blocks.pieces() * found_elements();
    const auto* src = run.First<const float>(kArgSrc);
    auto* dst = run.First<float>(kArgDst);
    const auto* addend = HasAddend(desc) ? run.First<const float>(kArgSrc1) : nullptr;
    auto* const bits = SavesBits(desc) ? run.args.Get<uint8_t>(kArgWorkspace) : nullptr;
    if (bits != nullptr) ClearLastBits(bits);
    const auto find = [&](const PixelBlocks::Piece& piece) {
      float* to = found + (piece.block * blocks.pieces() + piece.index) * found_elements();
      statistics->Run({.x = src + piece.offset,
                       .to = to,
                       .over_pixels = 1 / static_cast<float>(piece.pixels),
                       .pixels = piece.pixels});
    };
    const Channels channels = {ParametersOf(desc, run.args), run.args.Get<float>(kArgMean),
                               run.args.Get<float>(kArgVariance)};
    const auto merge = [&](int64_t block) {
      MergeBlock(channels, found + block * blocks.pieces() * found_elements(), block,
                 lines + block * line_elements());
    };
    const auto normalize = [&](const PixelBlocks::Piece& piece) {
      normalization.For(dst + piece.offset)
          .Run({.x = src + piece.offset,
                .dy = addend == nullptr ? nullptr : addend + piece.offset,
                .to = dst + piece.offset,
                .bits = bits == nullptr ? nullptr : bits + ByteOfPiece(desc, blocks, piece),
                .lines = lines + piece.block * line_elements(),
                .pixels = piece.pixels});
    };
    blocks.ForEachPieceTwice(run.team, find, merge, normalize);
  }
  size_t code_bytes() const { return statistics->code_bytes() + normalization.code_bytes(); }

  // Channels without a block have bits, too, where blocks are of 8.
  void ClearLastBits(uint8_t* bits) const {
    const int64_t channels = blocks.blocks() * blocks.lanes();
    if (channels % kChannelsOfBits == 0) return;
    std::fill_n(bits + ByteOfChannel(desc, channels - channels % kChannelsOfBits),
                blocks.pixels() * kBytesOfPixel, uint8_t{0});
  }

  struct Channels {
    ChannelParameters parameters;
    float *mean, *variance;  // which are written
  };
  void MergeBlock(const Channels& channels, const float* found, int64_t block, float* lines) const {
    const int64_t lanes = blocks.lanes();
    Merged merged;
    for (int64_t piece = 0; piece < blocks.pieces(); ++piece) {
      const auto pixels = static_cast<double>(blocks.PixelsOf(piece));
      merged.Add(pixels, found + piece * found_elements(), lanes);
    }
    std::fill_n(lines, line_elements(), 0.0f);
    const int64_t first = block * lanes;
    for (int64_t lane = 0; lane < std::min(lanes, desc.src.dim(1) - first); ++lane) {
      FinishChannel(channels, {merged.mean(lane), merged.variance(lane)}, first + lane,
                    lines + lane);
    }
  }

  struct Statistics {
    double mean, variance;
  };
  // The shift takes what the rounded mean leaves of the mean.
  void FinishChannel(const Channels& channels, const Statistics& batch, int64_t c,
                     float* line) const {
    const ChannelParameters& parameters = channels.parameters;
    const auto mean = static_cast<float>(batch.mean);
    channels.mean[c] = mean;
    channels.variance[c] = static_cast<float>(batch.variance);
    const double scale = (parameters.scale == nullptr ? 1 : parameters.scale[c]) /
                         std::sqrt(batch.variance + desc.epsilon);
    const double shift = parameters.shift == nullptr ? 0 : parameters.shift[c];
    line[0] = mean;
    line[blocks.lanes()] = static_cast<float>(scale);
    line[2 * blocks.lanes()] = static_cast<float>(shift - scale * (batch.mean - mean));
  }

  int64_t found_elements() const { return kStatisticsLines * blocks.lanes(); }
  int64_t line_elements() const { return kNormalizationLines * blocks.lanes(); }
  int64_t scratchpad_elements() const {
    return blocks.blocks() * (blocks.pieces() * found_elements() + line_elements());
  }

  BatchNormalizationDesc desc;
  PixelBlocks blocks;
  std::unique_ptr<const PassGenerator> statistics;
  jit::StoreForms<PassGenerator> normalization;
};

}  // namespace

absl::StatusOr<BatchNormalizationDesc> ResolveBatch(
    const Request<BatchNormalizationDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(BatchNormalizationDesc resolved, ResolveReference(request));
  if (!WritesStatistics(resolved)) return Unimplemented("statistics are given");
  if (resolved.dst != resolved.src) return Unimplemented("layouts of src and dst differ");
  if (HasAddend(resolved) && resolved.addend != resolved.src)
    return Unimplemented("layouts of src and addend differ");
  ABSL_RETURN_IF_ERROR(PixelBlocks::Create(resolved.src).status());
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateBatch(
    const Request<BatchNormalizationDesc>& request) {
  const auto& [name, isa, traits] = request.facts;
  ABSL_ASSIGN_OR_RETURN(const PixelBlocks blocks, PixelBlocks::Create(request.desc.src));
  BatchDriver driver{request.desc, blocks, nullptr, {}};
  ABSL_ASSIGN_OR_RETURN(driver.statistics, CompilePass(name, Pass::kStatistics, isa, blocks));
  PassOptions options = {.relu = request.desc.fuse_relu,
                         .addend = HasAddend(request.desc),
                         .limit = request.desc.relu_limit};
  const auto compile = [&] {
    return CompilePass(name, Pass::kNormalization, isa, blocks, options);
  };
  ABSL_ASSIGN_OR_RETURN(driver.normalization.plain, compile());
  if (Streams(request.desc.dst, isa, blocks)) {
    options.streams = true;
    ABSL_ASSIGN_OR_RETURN(driver.normalization.streaming, compile());
  }
  PrimitiveInfo info = InfoOf(request);
  info.scratchpad_bytes = driver.scratchpad_elements() * static_cast<int64_t>(sizeof(float));
  return MakeDriven(std::move(info), std::move(driver));
}

}  // namespace tilewire::batch_normalization
