// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/kernels/elements/quantization_range.h"
#include "engine/kernels/tiles/matrix_tile.h"
#include "engine/memory/layout.h"
#include "engine/primitives/convolution/direct/direct_layouts.h"
#include "engine/primitives/convolution/implementations.h"
#include "engine/primitives/convolution/integer/integer_depthwise_generator.h"
#include "engine/primitives/convolution/integer/integer_driver.h"
#include "engine/primitives/convolution/integer/integer_stage.h"
#include "engine/primitives/convolution/integer/pixel_sums.h"
#include "engine/primitives/convolution/integer/row_pairs.h"
#include "engine/primitives/convolution/requirements.h"
#include "engine/primitives/creation.h"

namespace tilewire::convolution {
namespace {

constexpr int64_t kMaxBlockQuads = 16;  // a cache line of src

bool OnMatrixTiles(const ImplementationFacts& facts) { return facts.isa.Includes(cpu::Isa::kAmx); }

// Tiles that are hardly filled cost as much as full ones.
absl::Status RequireFullTiles(const Geometry& geometry) {
  constexpr int64_t kFewestChannels = 32, kFewestPixels = 4;
  if (geometry.ic < kFewestChannels)
    return Unimplemented("is for 32 input channels a group and more");
  const bool is_flat = geometry.kernel == Spatial{1, 1, 1} && geometry.stride == Spatial{1, 1, 1};
  const Spatial& out = geometry.out;
  if ((is_flat ? out[0] * out[1] * out[2] : std::max(out[1], out[2])) < kFewestPixels)
    return Unimplemented("is for rows of 4 pixels and more");
  return absl::OkStatus();
}

// Narrower windows leave most of a line empty.
absl::Status RequireWideWindows(const Geometry& geometry) {
  constexpr int64_t kFewestTaps = 5;
  if (geometry.grouped_weights || geometry.ic > RowPairs::kPixelBytes)
    return Unimplemented("is for 1 to 4 input channels and no groups");
  if (geometry.tap_step[2] != 1 || geometry.kernel[2] < kFewestTaps ||
      geometry.kernel[2] > RowPairs::kRowPixels || geometry.kernel[1] < kFewestTaps)
    return Unimplemented("is for 5 to 8 dense taps along the width, and 5 rows or more");
  return absl::OkStatus();
}

// Input blocks of equal size; on matrix tiles, of a step.
int BlockQuads(const Geometry& geometry, const ImplementationFacts& facts) {
  if (OnMatrixTiles(facts)) return kMatrixStepBytes / kQuad;
  const int64_t quads = DivUp(geometry.ic, kQuad);
  return static_cast<int>(DivUp(quads, DivUp(quads, kMaxBlockQuads)));
}

// "acdb"
std::string ChannelsLast(int rank) {
  std::string pattern(PlainPattern(rank));
  pattern.erase(1, 1);
  return pattern + "b";
}

// Whether an s8 source becomes u8.
bool ShiftsSource(const ConvolutionDesc& desc, const ImplementationFacts& facts) {
  return !OnMatrixTiles(facts) && desc.src.data_type() == DataType::kS8 &&
         ByteProductsOf(VectorUnit::Of(facts.isa), desc.weights) != ByteProducts::kWidened;
}

// "ABcd4b16a4b", with groups "aBCde4c16b4c".
absl::StatusOr<MemoryDesc> PackedWeights(const ConvolutionDesc& desc,
                                         const ImplementationFacts& facts) {
  const VectorUnit unit = VectorUnit::Of(facts.isa);
  const Geometry geometry = GeometryOf(desc);
  std::string pattern(PlainPattern(desc.weights.rank()));
  const int o = geometry.grouped_weights ? 1 : 0;
  const std::string oc(1, pattern[o]), ic(1, pattern[o + 1]);
  pattern[o] = absl::ascii_toupper(pattern[o]);
  pattern[o + 1] = absl::ascii_toupper(pattern[o + 1]);
  const int quads = BlockQuads(geometry, facts);
  if (quads > 1) absl::StrAppend(&pattern, quads, ic);
  absl::StrAppend(&pattern, unit.lanes(), oc, kQuad, ic);
  ABSL_ASSIGN_OR_RETURN(MemoryDesc packed,
                        MemoryDesc::CreatePattern(desc.weights.dims(), DataType::kS8, pattern));
  if (!OnMatrixTiles(facts) && ByteProductsOf(unit, desc.weights) == ByteProducts::kPairs) {
    ABSL_ASSIGN_OR_RETURN(packed, packed.WithBound(kPairBound));
  }
  if (!ShiftsSource(desc, facts) && desc.range.IsZero()) return packed;
  return packed.WithCompensation(geometry.grouped_weights ? 3 : 1);
}

bool HasDenseChannels(const MemoryDesc& desc) {
  return desc.IsPlain() && (desc.stride(1) == 1 || desc.dim(1) == 1);
}

absl::Status CheckLayouts(const ConvolutionDesc& desc, int lanes) {
  const Geometry geometry = GeometryOf(desc);
  for (const InnerBlock& block : desc.src.inner_blocks()) {
    if (block.dim != 1) return RefuseLayout("src", desc.src);
  }
  const bool aligned = geometry.groups == 1 || geometry.oc % lanes == 0 || geometry.IsDepthwise();
  if (!HasDenseChannels(desc.dst) && !(aligned && IsChannelBlocked(desc.dst, lanes))) {
    return RefuseLayout("dst", desc.dst);
  }
  const bool dense_bias =
      desc.bias.IsZero() ||
      (desc.bias.IsPlain() && (desc.bias.stride(0) == 1 || desc.bias.dim(0) == 1));
  if (!dense_bias) return RefuseLayout("bias", desc.bias);
  return absl::OkStatus();
}

bool IsPadded(const ConvolutionDesc& desc) {
  const auto is_zero = [](int64_t padding) { return padding == 0; };
  return !std::all_of(desc.padding_left.begin(), desc.padding_left.end(), is_zero) ||
         !std::all_of(desc.padding_right.begin(), desc.padding_right.end(), is_zero);
}

absl::Status RequireNoZeroPoint(const ConvolutionDesc& desc) {
  if (desc.weights_zero_point == 0) return absl::OkStatus();
  return Unimplemented("takes weights whose zero point is 0");
}

// With layouts for src, dst and bias.
absl::StatusOr<ConvolutionDesc> ResolveActivations(const ConvolutionDesc& desc,
                                                   const VectorUnit& unit) {
  ABSL_RETURN_IF_ERROR(RequireInteger(desc));
  if (!desc.range.IsZero() && IsPadded(desc))
    return Unimplemented("takes no padding together with a range");
  ConvolutionDesc resolved = desc;
  const std::string pattern = ChannelsLast(desc.src.rank());
  ABSL_ASSIGN_OR_RETURN(resolved.src, OrPattern(desc.src, pattern));
  ABSL_ASSIGN_OR_RETURN(resolved.dst, OrPattern(desc.dst, pattern));
  ABSL_ASSIGN_OR_RETURN(resolved.bias, OrPattern(desc.bias, "a"));
  ABSL_RETURN_IF_ERROR(CheckLayouts(resolved, unit.lanes()));
  return resolved;
}

// How the source is copied, if it is not read in place: with pairs of rows, a copy of the copy.
struct Copies {
  std::optional<IntegerStage> stage;
  std::optional<RowPairs> pairs = std::nullopt;

  int64_t StagedBytes() const { return RoundUp(stage->bytes(), RowPairs::kLineBytes); }
  int64_t bytes() const { return !stage ? 0 : StagedBytes() + (pairs ? pairs->bytes() : 0); }

  // Returns where the driver reads the image.
  const std::byte* Run(const std::byte* image, std::byte* to, const threading::Team& team) const {
    stage->Run(image, to, team);
    if (!pairs) return to;
    pairs->Run(to, to + StagedBytes(), team);
    return to + StagedBytes();
  }
};

// Immutable. With a stage, images go through the scratchpad one by one.
class IntegerConvolution final : public Primitive {
 public:
  IntegerConvolution(PrimitiveInfo info, const ConvolutionDesc& desc, Copies copies,
                     IntegerDriver driver, std::vector<float> scales)
      : Primitive(std::move(info)),
        copies_(std::move(copies)),
        driver_(std::move(driver)),
        scales_(std::move(scales)),
        desc_(desc) {
    if (desc.weights_zero_point != 0)
      sums_.emplace(driver_.problem(), desc.src.dim(1) / GeometryOf(desc).groups);
  }

  // Parts of the scratchpad: for the scales and compensation of one run, and for those of pixels.
  static int64_t RangeBytes(int64_t channels) { return RoundUp(channels * 8, 64); }
  static int64_t PixelBytes(const PixelSums& sums, int64_t images) {
    const int64_t results = images * sums.Results() * static_cast<int64_t>(sizeof(int32_t));
    return RoundUp(results + sums.ScratchBytes(), 64);
  }

 private:
  void Run(const ExecuteArgs& args, std::byte* scratchpad,
           const threading::Team& team) const override {
    const auto* src = First<const std::byte>(args, kArgSrc);
    IntegerDriver::Operands operands = {.src = src,
                                        .weights = First<const std::byte>(args, kArgWeights),
                                        .bias = First<const std::byte>(args, kArgBias),
                                        .scales = scales_.data(),
                                        .compensation = nullptr,
                                        .dst = First<std::byte>(args, kArgDst)};
    if (desc_.weights.HasCompensation()) {
      operands.compensation = reinterpret_cast<const int32_t*>(
          args.Get<const std::byte>(kArgWeights) + desc_.weights.CompensationOffsetBytes());
    }
    const auto* range = First<const float>(args, kArgQuantizationRange);
    if (range != nullptr) {
      UseRange(range, scratchpad, &operands);
      scratchpad += RangeBytes(scales_.size());
    }
    const int64_t images = desc_.src.dim(0), images_at_once = copies_.stage ? 1 : images;
    std::byte* const pixels = scratchpad;
    if (sums_) scratchpad += PixelBytes(*sums_, images_at_once);
    if (!copies_.stage) {
      SumPixels(range, images, pixels, &operands, team);
      return driver_.Run(operands, images, team);
    }
    for (int64_t n = 0; n < images; ++n) {
      operands.src = copies_.Run(src + n * desc_.src.stride(0), scratchpad, team);
      SumPixels(range, 1, pixels, &operands, team);
      driver_.Run(operands, 1, team);
      operands.dst += desc_.dst.stride(0) * SizeOf(desc_.dst.data_type());
    }
  }

  // The scales of this run, and what takes the zero point from the sums: the compensation of the
  // weights is -128 times the sums of theirs.
  void UseRange(const float* range, std::byte* scratchpad,
                IntegerDriver::Operands* operands) const {
    float* scales = reinterpret_cast<float*>(scratchpad);
    int32_t* compensation = reinterpret_cast<int32_t*>(scales + scales_.size());
    const int32_t zero_point = ZeroPointOf(range);
    for (size_t c = 0; c < scales_.size(); ++c) {
      scales[c] = range[0] * scales_[c];
      compensation[c] = zero_point * (operands->compensation[c] / 128);
    }
    operands->scales = scales;
    operands->compensation = compensation;
  }

  // Prepares what removes the zero point of the weights from the sums, if they have one.
  void SumPixels(const float* range, int64_t images, std::byte* memory,
                 IntegerDriver::Operands* operands, const threading::Team& team) const {
    if (!sums_) return;
    auto* const numbers = reinterpret_cast<int32_t*>(memory);
    std::byte* const scratch = memory + images * sums_->Results() * sizeof(int32_t);
    for (int64_t n = 0; n < images; ++n) {
      sums_->Run(operands->src + n * driver_.problem().src.image, ZeroPointOf(range),
                 desc_.weights_zero_point, scratch, numbers + n * sums_->Results(), team);
    }
    operands->pixel_compensation = numbers;
  }

  const Copies copies_;
  const IntegerDriver driver_;
  const std::vector<float> scales_;  // of every group, in whole vectors
  std::optional<PixelSums> sums_;    // where the weights have a zero point
  const ConvolutionDesc desc_;
};

std::vector<float> PaddedScales(const OutputScales& scales, const Geometry& geometry, int lanes) {
  const int64_t padded = RoundUp(geometry.oc, lanes);
  std::vector<float> result(geometry.groups * padded, scales.scales[0]);
  for (int64_t c = 0; scales.mask != 0 && c < geometry.groups * geometry.oc; ++c) {
    result[c / geometry.oc * padded + c % geometry.oc] = scales.scales[c];
  }
  return result;
}

IntegerProblem IntegerProblemOf(const Request<ConvolutionDesc>& request) {
  const ConvolutionDesc& desc = request.desc;
  const VectorUnit unit = VectorUnit::Of(request.facts.isa);
  IntegerProblem problem{.geometry = GeometryOf(desc), .epilogue = {.unit = unit}};
  const Geometry& geometry = problem.geometry;
  const int group = geometry.grouped_weights ? 1 : 0, lanes = unit.lanes();
  problem.on_matrix_tiles = OnMatrixTiles(request.facts);
  problem.products = ByteProductsOf(unit, desc.weights);
  problem.signed_src = desc.src.data_type() == DataType::kS8 && !ShiftsSource(desc, request.facts);
  problem.block_quads = BlockQuads(geometry, request.facts);
  problem.dst = StridesOfBytes(desc.dst, lanes, geometry.oc);
  problem.weights_group = group == 1 ? desc.weights.stride(0) : 0;
  problem.weights_oc_block = desc.weights.stride(group);
  problem.weights_ic_block = desc.weights.stride(group + 1);
  problem.epilogue.bias = !desc.bias.IsZero();
  if (problem.epilogue.bias) problem.epilogue.bias_type = desc.bias.data_type();
  problem.epilogue.dst_type = desc.dst.data_type();
  problem.epilogue.compensation = desc.weights.HasCompensation();
  problem.epilogue.pixel_compensation = desc.weights_zero_point != 0;
  problem.epilogue.bias_after_scales = !desc.range.IsZero();
  problem.epilogue.scales = !request.attributes.output_scales.IsDefault() || !desc.range.IsZero();
  problem.epilogue.packed_channels = desc.dst.IsPlain();
  problem.epilogue.post_ops = request.attributes.post_ops;
  return problem;
}

std::unique_ptr<Primitive> Around(const ConvolutionDesc& desc, Copies copies, IntegerDriver driver,
                                  std::vector<float> scales, PrimitiveInfo info) {
  info = WithCode(std::move(info), driver);
  info.scratchpad_bytes = copies.bytes();
  if (!desc.range.IsZero())
    info.scratchpad_bytes += IntegerConvolution::RangeBytes(static_cast<int64_t>(scales.size()));
  if (desc.weights_zero_point != 0) {
    const PixelSums sums(driver.problem(), 0);
    info.scratchpad_bytes +=
        IntegerConvolution::PixelBytes(sums, copies.stage ? 1 : desc.src.dim(0));
  }
  return std::make_unique<IntegerConvolution>(std::move(info), desc, std::move(copies),
                                              std::move(driver), std::move(scales));
}

}  // namespace

absl::StatusOr<ConvolutionDesc> ResolveInteger(const Request<ConvolutionDesc>& request) {
  const ConvolutionDesc& desc = request.desc;
  if (OnMatrixTiles(request.facts)) {
    ABSL_RETURN_IF_ERROR(RequireFullTiles(GeometryOf(desc)));
    ABSL_RETURN_IF_ERROR(RequireNoZeroPoint(desc));
  }
  ABSL_ASSIGN_OR_RETURN(ConvolutionDesc resolved,
                        ResolveActivations(desc, VectorUnit::Of(request.facts.isa)));
  if (desc.weights_zero_point != 0 && !HasDenseChannels(resolved.src))
    return RefuseLayout("src", desc.src);
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc packed, PackedWeights(desc, request.facts));
  return WithWeights(std::move(resolved), packed);
}

absl::StatusOr<ConvolutionDesc> ResolveIntegerFirstLayer(const Request<ConvolutionDesc>& request) {
  const ConvolutionDesc& desc = request.desc;
  ABSL_ASSIGN_OR_RETURN(ConvolutionDesc resolved,
                        ResolveActivations(desc, VectorUnit::Of(request.facts.isa)));
  ABSL_RETURN_IF_ERROR(RequireWideWindows(GeometryOf(desc)));
  ABSL_RETURN_IF_ERROR(RequireNoZeroPoint(desc));
  if (!desc.range.IsZero()) return Unimplemented("takes no range");
  if (desc.src.rank() != 4) return Unimplemented("is for images");
  ABSL_ASSIGN_OR_RETURN(
      const MemoryDesc packed,
      MemoryDesc::CreatePattern(desc.weights.dims(), DataType::kS8, "ABCD2c8d16a4b"));
  return WithWeights(std::move(resolved), packed);
}

absl::StatusOr<ConvolutionDesc> ResolveIntegerDepthwise(const Request<ConvolutionDesc>& request) {
  const ConvolutionDesc& desc = request.desc;
  const VectorUnit unit = VectorUnit::Of(request.facts.isa);
  const Geometry geometry = GeometryOf(desc);
  ABSL_ASSIGN_OR_RETURN(ConvolutionDesc resolved, ResolveActivations(desc, unit));
  if (!geometry.IsDepthwise()) return Unimplemented("is for one channel a group");
  ABSL_RETURN_IF_ERROR(RequireNoZeroPoint(desc));
  if (geometry.kernel[2] > kMaxDepthwiseTaps) return Unimplemented("the kernel is too wide");
  if (!HasDenseChannels(resolved.src) && !IsChannelBlocked(resolved.src, unit.lanes())) {
    return RefuseLayout("src", desc.src);
  }
  std::string pattern(PlainPattern(desc.weights.rank()));
  pattern[0] = 'A';
  ABSL_ASSIGN_OR_RETURN(MemoryDesc packed,
                        MemoryDesc::CreatePattern(desc.weights.dims(), DataType::kS8,
                                                  absl::StrCat(pattern, unit.lanes(), "a")));
  if (!desc.range.IsZero()) {
    ABSL_ASSIGN_OR_RETURN(packed, packed.WithCompensation(1));
  }
  return WithWeights(std::move(resolved), packed);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateInteger(const Request<ConvolutionDesc>& request) {
  const ConvolutionDesc& desc = request.desc;
  const VectorUnit unit = VectorUnit::Of(request.facts.isa);
  PrimitiveInfo info = InfoOf(request);
  IntegerProblem problem = IntegerProblemOf(request);
  const Geometry geometry = problem.geometry;
  const bool shifts = problem.epilogue.compensation && desc.range.IsZero();
  const int64_t step = problem.on_matrix_tiles ? kMatrixStepBytes : kQuad;
  std::optional<IntegerStage> stage;
  if (shifts || geometry.ic % step != 0 || !HasDenseChannels(desc.src) ||
      (problem.on_matrix_tiles && IsPadded(desc))) {
    ABSL_ASSIGN_OR_RETURN(stage, IntegerStage::Create(desc.src, geometry, shifts ? 0x80 : 0, step));
    problem.geometry = stage->StagedGeometry();
    problem.src = stage->StagedStrides();
  } else {
    problem.src = StridesOfBytes(desc.src, unit.lanes(), geometry.ic);
    problem.geometry.ic /= kQuad;
  }
  ABSL_ASSIGN_OR_RETURN(IntegerDriver driver, IntegerDriver::Create(info.name, problem));
  return Around(desc, {std::move(stage)}, std::move(driver),
                PaddedScales(request.attributes.output_scales, geometry, unit.lanes()),
                std::move(info));
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateIntegerFirstLayer(
    const Request<ConvolutionDesc>& request) {
  const ConvolutionDesc& desc = request.desc;
  PrimitiveInfo info = InfoOf(request);
  IntegerProblem problem = IntegerProblemOf(request);
  const Geometry geometry = problem.geometry;
  Copies copies;
  ABSL_ASSIGN_OR_RETURN(copies.stage, IntegerStage::Create(desc.src, geometry, 0, kQuad));
  ABSL_ASSIGN_OR_RETURN(copies.pairs, RowPairs::Create(copies.stage->StagedGeometry(),
                                                       copies.stage->StagedStrides()));
  problem.geometry = copies.pairs->PairedGeometry();
  problem.src = copies.pairs->PairedStrides();
  ABSL_ASSIGN_OR_RETURN(IntegerDriver driver, IntegerDriver::Create(info.name, problem));
  return Around(desc, std::move(copies), std::move(driver),
                PaddedScales(request.attributes.output_scales, geometry, problem.unit().lanes()),
                std::move(info));
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateIntegerDepthwise(
    const Request<ConvolutionDesc>& request) {
  const ConvolutionDesc& desc = request.desc;
  const VectorUnit unit = VectorUnit::Of(request.facts.isa);
  PrimitiveInfo info = InfoOf(request);
  IntegerProblem problem = IntegerProblemOf(request);
  problem.depthwise = true;
  problem.signed_src = desc.src.data_type() == DataType::kS8;
  problem.packed_src = desc.src.IsPlain();
  problem.geometry.oc = problem.geometry.groups;
  problem.geometry.groups = 1;
  problem.src = StridesOfBytes(desc.src, unit.lanes(), problem.geometry.oc);
  problem.dst = StridesOfBytes(desc.dst, unit.lanes(), problem.geometry.oc);
  problem.weights_group = problem.weights_ic_block = 0;
  problem.weights_oc_block = desc.weights.stride(0);
  ABSL_ASSIGN_OR_RETURN(IntegerDriver driver, IntegerDriver::Create(info.name, problem));
  return Around(desc, {std::nullopt}, std::move(driver),
                PaddedScales(request.attributes.output_scales, problem.geometry, unit.lanes()),
                std::move(info));
}

}  // namespace tilewire::convolution
