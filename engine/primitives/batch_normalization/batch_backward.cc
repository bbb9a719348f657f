// SPDX-License-Identifier: Apache-2.0
//
// A pass sums dy and dy (src - mean) over pieces of blocks of channels; the sums of pieces are
// added in their order, in double, so that bits do not depend on threads. With f = scale r, and the
// sums over m elements, a second pass writes
//
//   diff_src = f dy - f r diff_scale / m (src - mean) - f diff_shift / m
//
// and f dy alone where statistics were given, which needs sums for scale and shift only.
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/primitives/batch_normalization/implementations.h"
#include "engine/primitives/batch_normalization/pass_generator.h"
#include "engine/primitives/batch_normalization/pixel_blocks.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/driven_primitive.h"

namespace tilewire::batch_normalization {
namespace {

struct GradientDriver {
  void Run(const DrivenRun& run) const {
    auto* const lines = reinterpret_cast<float*>(run.scratchpad);
    float* const found = lines + blocks.blocks() * line_elements();
    const auto *src = run.First<const float>(kArgSrc), *dy = run.First<const float>(kArgDiffDst);
    auto* diff_src = run.First<float>(kArgDiffSrc);
    run.team.ParallelFor(blocks.blocks(), [&](int64_t block) {
      FillLines(run.args, block, lines + block * line_elements());
    });
    if (sums != nullptr) {
      blocks.ForEachPiece(run.team, [&](const PixelBlocks::Piece& piece) {
        sums->Run({.x = src + piece.offset,
                   .dy = dy + piece.offset,
                   .to = found + (piece.block * blocks.pieces() + piece.index) * found_elements(),
                   .lines = lines + piece.block * line_elements(),
                   .pixels = piece.pixels});
      });
      run.team.ParallelFor(blocks.blocks(), [&](int64_t block) {
        AddPieces(run.args, found + block * blocks.pieces() * found_elements(), block,
                  lines + block * line_elements());
      });
    }
    blocks.ForEachPiece(run.team, [&](const PixelBlocks::Piece& piece) {
      gradient->Run({.x = src + piece.offset,
                     .dy = dy + piece.offset,
                     .to = diff_src + piece.offset,
                     .lines = lines + piece.block * line_elements(),
                     .pixels = piece.pixels});
    });
  }
  size_t code_bytes() const {
    return gradient->code_bytes() + (sums == nullptr ? 0 : sums->code_bytes());
  }

  // Line 0, the mean, and line 1, f; the others are 0 until there are sums.
  void FillLines(const ExecuteArgs& args, int64_t block, float* lines) const {
    const ChannelParameters parameters = ParametersOf(desc, args);
    std::fill_n(lines, line_elements(), 0.0f);
    for (int64_t lane = 0; lane < ChannelsOf(block); ++lane) {
      const int64_t c = block * blocks.lanes() + lane;
      lines[lane] = parameters.mean[c];
      lines[blocks.lanes() + lane] = static_cast<float>(FactorOf(parameters, c));
    }
  }

  void AddPieces(const ExecuteArgs& args, const float* found, int64_t block, float* lines) const {
    double total[kGradientSumsLines * PixelBlocks::kMostLanes] = {};
    double pixels = 0;
    for (int64_t piece = 0; piece < blocks.pieces(); ++piece) {
      for (int64_t i = 0; i < found_elements(); ++i)
        total[i] += found[piece * found_elements() + i];
      pixels += static_cast<double>(blocks.PixelsOf(piece));
    }
    for (int64_t lane = 0; lane < ChannelsOf(block); ++lane) {
      FinishChannel(args, block * blocks.lanes() + lane,
                    {total[lane], total[blocks.lanes() + lane]}, pixels, lines + lane);
    }
  }

  struct Sums {
    double dy, products;  // with src - mean
  };
  void FinishChannel(const ExecuteArgs& args, int64_t c, const Sums& total, double pixels,
                     float* line) const {
    const ChannelParameters parameters = ParametersOf(desc, args);
    const double r = RootOf(parameters, c), factor = FactorOf(parameters, c);
    if (WritesParameterGradients(desc)) {
      auto* diff_weights = args.Get<float>(kArgDiffWeights);
      diff_weights[c] = static_cast<float>(total.products * r);
      diff_weights[desc.src.dim(1) + c] = static_cast<float>(total.dy);
    }
    line[2 * blocks.lanes()] = static_cast<float>(-factor * r * r * total.products / pixels);
    line[3 * blocks.lanes()] = static_cast<float>(-factor * total.dy / pixels);
  }

  double RootOf(const ChannelParameters& parameters, int64_t c) const {
    return 1 / std::sqrt(static_cast<double>(parameters.variance[c]) + desc.epsilon);
  }
  double FactorOf(const ChannelParameters& parameters, int64_t c) const {
    return RootOf(parameters, c) * (parameters.scale == nullptr ? 1 : parameters.scale[c]);
  }
  int64_t ChannelsOf(int64_t block) const {
    return std::min(blocks.lanes(), desc.src.dim(1) - block * blocks.lanes());
  }
  int64_t found_elements() const { return kGradientSumsLines * blocks.lanes(); }
  int64_t line_elements() const { return kGradientLines * blocks.lanes(); }
  int64_t scratchpad_elements() const {
    const int64_t pieces = sums == nullptr ? 0 : blocks.pieces();
    return blocks.blocks() * (pieces * found_elements() + line_elements());
  }

  BatchNormalizationDesc desc;
  PixelBlocks blocks;
  std::unique_ptr<const PassGenerator> sums, gradient;  // no sums where nothing needs them
};

}  // namespace

absl::StatusOr<BatchNormalizationDesc> ResolveBatchBackward(
    const Request<BatchNormalizationDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(BatchNormalizationDesc resolved, ResolveReferenceBackward(request));
  if (resolved.fuse_relu) return Unimplemented("reads no bits of what relu zeroed");
  if (resolved.diff_src != resolved.src || resolved.diff_dst != resolved.src) {
    return Unimplemented("layouts of the tensors differ");
  }
  ABSL_RETURN_IF_ERROR(PixelBlocks::Create(resolved.src).status());
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateBatchBackward(
    const Request<BatchNormalizationDesc>& request) {
  const BatchNormalizationDesc& desc = request.desc;
  const auto& [name, isa, traits] = request.facts;
  ABSL_ASSIGN_OR_RETURN(const PixelBlocks blocks, PixelBlocks::Create(desc.src));
  GradientDriver driver{desc, blocks, nullptr, nullptr};
  if (!desc.use_global_stats || WritesParameterGradients(desc)) {
    ABSL_ASSIGN_OR_RETURN(driver.sums, CompilePass(name, Pass::kGradientSums, isa, blocks));
  }
  const Pass pass = desc.use_global_stats ? Pass::kScaling : Pass::kGradient;
  ABSL_ASSIGN_OR_RETURN(driver.gradient, CompilePass(name, pass, isa, blocks));
  PrimitiveInfo info = BackwardInfoOf(request);
  info.scratchpad_bytes = driver.scratchpad_elements() * static_cast<int64_t>(sizeof(float));
  return MakeDriven(std::move(info), std::move(driver));
}

}  // namespace tilewire::batch_normalization
