// SPDX-License-Identifier: Apache-2.0
//
// A pass sums dy and dy (src - mean) over pieces of blocks of channels; the sums of pieces are
// added in their order, in double, so that bits do not depend on threads. With f = scale r, and the
// sums over m elements, a second pass writes
//
//   diff_src = f dy - f r diff_scale / m (src - mean) - f diff_shift / m
//
// and f dy alone where statistics were given, which needs sums for scale and shift only. With an
// addend the first pass writes its gradient, which the second reads in place of dy. Where
// blocks lie apart, a block has both passes before the next one, the second from its last piece on,
// so that caches hold much of what it reads again; a large diff_src is written past them.
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

struct GradientDriver {
  // A run's: the lines of all blocks, the sums of all pieces, and the tensors.
  struct Memory {
    float *lines, *found;
    const float *src, *dy;
    float *diff_src, *of_addend;  // of_addend and bits may be null
    uint8_t* bits;
  };

  void Run(const DrivenRun& run) const {
    auto* const lines = reinterpret_cast<float*>(run.scratchpad);
    const Memory memory = {lines,
                           lines + blocks.blocks() * line_elements(),
                           run.First<const float>(kArgSrc),
                           run.First<const float>(kArgDiffDst),
                           run.First<float>(kArgDiffSrc),
                           HasAddend(desc) ? run.First<float>(kArgDiffSrc1) : nullptr,
                           SavesBits(desc) ? run.args.Get<uint8_t>(kArgWorkspace) : nullptr};
    run.team.ParallelFor(blocks.blocks(), [&](int64_t block) {
      FillLines(run.args, block, lines + block * line_elements());
    });
    const auto add = [&](const PixelBlocks::Piece& piece) { AddPiece(memory, piece); };
    const auto write = [&](const PixelBlocks::Piece& piece) { WritePiece(memory, piece); };
    if (sums == nullptr) return blocks.ForEachPiece(run.team, write);
    blocks.ForEachPieceTwice(
        run.team, add, [&](int64_t block) { AddPieces(run.args, memory, block); }, write);
  }

  void AddPiece(const Memory& memory, const PixelBlocks::Piece& piece) const {
    sums->Run(
        {.x = memory.src + piece.offset,
         .dy = memory.dy + piece.offset,
         .to = memory.found + (piece.block * blocks.pieces() + piece.index) * found_elements(),
         .masked = memory.of_addend == nullptr ? nullptr : memory.of_addend + piece.offset,
         .bits = BitsOfPiece(memory, piece),
         .lines = memory.lines + piece.block * line_elements(),
         .pixels = piece.pixels});
  }

  void WritePiece(const Memory& memory, const PixelBlocks::Piece& piece) const {
    float* const to = memory.diff_src + piece.offset;
    const float* const dy = memory.of_addend == nullptr ? memory.dy : memory.of_addend;
    gradient.For(to).Run({.x = memory.src + piece.offset,
                          .dy = dy + piece.offset,
                          .to = to,
                          .bits = BitsOfPiece(memory, piece),
                          .lines = memory.lines + piece.block * line_elements(),
                          .pixels = piece.pixels});
  }

  uint8_t* BitsOfPiece(const Memory& memory, const PixelBlocks::Piece& piece) const {
    if (memory.bits == nullptr) return nullptr;
    return memory.bits + ByteOfPiece(desc, blocks, piece);
  }

  size_t code_bytes() const {
    return gradient.code_bytes() + (sums == nullptr ? 0 : sums->code_bytes());
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

  void AddPieces(const ExecuteArgs& args, const Memory& memory, int64_t block) const {
    const float* const found = memory.found + block * blocks.pieces() * found_elements();
    float* const lines = memory.lines + block * line_elements();
    double total[kGradientSumsLines * PixelBlocks::kMostLanes] = {};
    double pixels = 0;
    for (int64_t piece = 0; piece < blocks.pieces(); ++piece) {
      const float* const of_piece = found + piece * found_elements();
      for (int64_t first = 0; first < found_elements(); first += PixelBlocks::kLeastLanes) {
        for (int64_t i = 0; i < PixelBlocks::kLeastLanes; ++i)  // a count that becomes vectors
          total[first + i] += of_piece[first + i];
      }
      pixels += static_cast<double>(blocks.PixelsOf(piece));
    }
    const Channels channels = {ParametersOf(desc, args), WritesParameterGradients(desc)
                                                             ? args.Get<float>(kArgDiffWeights)
                                                             : nullptr};
    for (int64_t lane = 0; lane < ChannelsOf(block); ++lane) {
      FinishChannel(channels, block * blocks.lanes() + lane,
                    {total[lane], total[blocks.lanes() + lane]}, pixels, lines + lane);
    }
  }

  struct Channels {
    ChannelParameters parameters;
    float* diff_weights;  // may be null
  };
  struct Sums {
    double dy, products;  // with src - mean
  };
  void FinishChannel(const Channels& channels, int64_t c, const Sums& total, double pixels,
                     float* line) const {
    const double r = RootOf(channels.parameters, c), factor = FactorOf(channels.parameters, c);
    if (channels.diff_weights != nullptr) {
      channels.diff_weights[c] = static_cast<float>(total.products * r);
      channels.diff_weights[desc.src.dim(1) + c] = static_cast<float>(total.dy);
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
  std::unique_ptr<const PassGenerator> sums;  // null where nothing needs them
  jit::StoreForms<PassGenerator> gradient;
};

}  // namespace

absl::StatusOr<BatchNormalizationDesc> ResolveBatchBackward(
    const Request<BatchNormalizationDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(BatchNormalizationDesc resolved, ResolveReferenceBackward(request));
  const bool have_one_layout = resolved.diff_src == resolved.src &&
                               resolved.diff_dst == resolved.src &&
                               (!HasAddend(resolved) || resolved.addend == resolved.src);
  if (!have_one_layout) return Unimplemented("layouts of the tensors differ");
  ABSL_RETURN_IF_ERROR(PixelBlocks::Create(resolved.src).status());
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateBatchBackward(
    const Request<BatchNormalizationDesc>& request) {
  const BatchNormalizationDesc& desc = request.desc;
  const auto& [name, isa, traits] = request.facts;
  ABSL_ASSIGN_OR_RETURN(const PixelBlocks blocks, PixelBlocks::Create(desc.src));
  GradientDriver driver{desc, blocks, nullptr, {}};
  PassOptions options = {.relu = desc.fuse_relu, .addend = HasAddend(desc)};
  if (!desc.use_global_stats || WritesParameterGradients(desc) || HasAddend(desc)) {
    ABSL_ASSIGN_OR_RETURN(driver.sums,
                          CompilePass(name, Pass::kGradientSums, isa, blocks, options));
  }
  options = {.relu = desc.fuse_relu && !HasAddend(desc)};
  const Pass pass = desc.use_global_stats ? Pass::kScaling : Pass::kGradient;
  ABSL_ASSIGN_OR_RETURN(driver.gradient.plain, CompilePass(name, pass, isa, blocks, options));
  if (Streams(desc.diff_src, isa, blocks)) {
    options.streams = true;
    ABSL_ASSIGN_OR_RETURN(driver.gradient.streaming, CompilePass(name, pass, isa, blocks, options));
  }
  PrimitiveInfo info = BackwardInfoOf(request);
  info.scratchpad_bytes = driver.scratchpad_elements() * static_cast<int64_t>(sizeof(float));
  return MakeDriven(std::move(info), std::move(driver));
}

}  // namespace tilewire::batch_normalization
