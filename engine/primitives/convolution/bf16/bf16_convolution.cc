// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/primitives/convolution/bf16/bf16_stage.h"
#include "engine/primitives/convolution/direct/direct_cost.h"
#include "engine/primitives/convolution/direct/direct_driver.h"
#include "engine/primitives/convolution/direct/direct_layouts.h"
#include "engine/primitives/convolution/implementations.h"
#include "engine/primitives/convolution/requirements.h"
#include "engine/primitives/creation.h"

namespace tilewire::convolution {
namespace {

constexpr int kPairLanes = 16;  // of f32 in a register

int64_t BytesOfImage(const MemoryDesc& desc) { return desc.stride(0) * SizeOf(desc.data_type()); }

// Immutable. A src of f32 is rounded first: the scratchpad holds the copy of the images of a turn.
class PairsConvolution final : public Primitive {
 public:
  PairsConvolution(PrimitiveInfo info, const ConvolutionDesc& desc, int64_t images,
                   std::optional<Bf16Stage> stage, DirectDriver driver)
      : Primitive(std::move(info)),
        desc_(desc),
        images_(images),
        stage_(std::move(stage)),
        driver_(std::move(driver)) {}

 private:
  void Run(const ExecuteArgs& args, std::byte* scratchpad,
           const threading::Team& team) const override {
    const auto* src = First<const std::byte>(args, kArgSrc);
    auto* dst = First<std::byte>(args, kArgDst);
    for (int64_t image = 0; image < desc_.src.dim(0); image += images_) {
      const auto* from = reinterpret_cast<const float*>(src + image * BytesOfImage(desc_.src));
      if (stage_) {
        stage_->Run(from, images_, scratchpad, team);
        from = reinterpret_cast<const float*>(scratchpad);
      }
      driver_.Run(from, First<const float>(args, kArgWeights), First<const float>(args, kArgBias),
                  reinterpret_cast<float*>(dst + image * BytesOfImage(desc_.dst)), team);
    }
  }

  const ConvolutionDesc desc_;
  const int64_t images_;  // of one turn
  const std::optional<Bf16Stage> stage_;
  const DirectDriver driver_;
};

// "ABcd16b16a2b", with groups "aBCde16c16b2c".
absl::StatusOr<MemoryDesc> PairedWeights(const ConvolutionDesc& desc) {
  std::string pattern(PlainPattern(desc.weights.rank()));
  const int o = desc.weights.rank() > desc.src.rank() ? 1 : 0;
  const std::string oc(1, pattern[o]), ic(1, pattern[o + 1]);
  pattern[o] = absl::ascii_toupper(pattern[o]);
  pattern[o + 1] = absl::ascii_toupper(pattern[o + 1]);
  absl::StrAppend(&pattern, kPairLanes, ic, kPairLanes, oc, kPairNumbers, ic);
  return MemoryDesc::CreatePattern(desc.weights.dims(), DataType::kBf16, pattern);
}

// The multiple of neighbouring channels of a group that lie together, with zeros after them.
int64_t GroupMultiple(const MemoryDesc& tensor) {
  return IsBf16(tensor) ? kBf16LineNumbers : kPairLanes;
}

absl::Status RequireWholeVectors(const ConvolutionDesc& desc) {
  const Geometry geometry = GeometryOf(desc);
  if (geometry.ic < kPairLanes || geometry.oc < kPairLanes)
    return Unimplemented("is for 16 input and output channels per group and more");
  const bool aligned =
      geometry.ic % GroupMultiple(desc.src) == 0 && geometry.oc % GroupMultiple(desc.dst) == 0;
  if (geometry.groups > 1 && !aligned)
    return Unimplemented("is for groups of whole blocks of channels");
  if (geometry.batch == 0) return Unimplemented("takes no batch of 0");
  return absl::OkStatus();
}

DirectProblem PairsProblemOf(const ConvolutionDesc& desc, const Attributes& attributes,
                             const Geometry& geometry, const ActivationStrides& src) {
  const int64_t oc = geometry.oc;
  DirectProblem problem{.geometry = geometry, .unit = VectorUnit::Of(cpu::Isa::kAvx512Bf16)};
  problem.src = src;
  problem.dst = StridesInFloats(desc.dst, kPairLanes, oc);
  problem.dst_type = desc.dst.data_type();
  const int group = problem.geometry.grouped_weights ? 1 : 0;
  problem.weights = {.group = group == 1 ? desc.weights.stride(0) / kPairNumbers : 0,
                     .oc_block = desc.weights.stride(group) / kPairNumbers,
                     .ic_block = desc.weights.stride(group + 1) / kPairNumbers};
  problem.has_bias = !desc.bias.IsZero();
  problem.pairs = true;
  problem.post_ops = attributes.post_ops;
  return problem;
}

// Reads src as it lies.
absl::StatusOr<std::unique_ptr<Primitive>> CreateReadingInPlace(const ConvolutionDesc& desc,
                                                                const Attributes& attributes,
                                                                PrimitiveInfo info) {
  Geometry geometry = GeometryOf(desc);
  const ActivationStrides src = StridesInFloats(desc.src, kPairLanes, geometry.ic);
  geometry.ic = DivUp(geometry.ic, kPairNumbers);
  ABSL_ASSIGN_OR_RETURN(
      DirectDriver driver,
      DirectDriver::Create(info.name, PairsProblemOf(desc, attributes, geometry, src)));
  return std::make_unique<PairsConvolution>(WithCode(std::move(info), driver), desc, geometry.batch,
                                            std::nullopt, std::move(driver));
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateWithStage(const ConvolutionDesc& desc,
                                                           const Attributes& attributes,
                                                           Bf16Stage stage, PrimitiveInfo info) {
  Geometry geometry = stage.StagedGeometry();
  geometry.batch = ImagesAtOnce(geometry.batch, stage.ImageBytes());
  const auto bytes = CheckedMul(geometry.batch, stage.ImageBytes());
  if (!bytes) return ResourceExhausted("the rounded copy of src is too large");
  ABSL_ASSIGN_OR_RETURN(DirectDriver driver,
                        DirectDriver::Create(info.name, PairsProblemOf(desc, attributes, geometry,
                                                                       stage.StagedStrides())));
  info = WithCode(std::move(info), driver, stage);
  info.scratchpad_bytes = *bytes;
  return std::make_unique<PairsConvolution>(std::move(info), desc, geometry.batch, std::move(stage),
                                            std::move(driver));
}

}  // namespace

absl::StatusOr<ConvolutionDesc> ResolvePairs(const Request<ConvolutionDesc>& request) {
  const ConvolutionDesc& desc = request.desc;
  ABSL_RETURN_IF_ERROR(RequireF32OrBf16(desc));
  ABSL_RETURN_IF_ERROR(RequireNoOutputScales(request.attributes));
  ABSL_RETURN_IF_ERROR(RequireDirect(desc));
  ABSL_RETURN_IF_ERROR(RequireWholeVectors(desc));
  ConvolutionDesc resolved = desc;
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc packed, PairedWeights(desc));
  const bool may_pack = desc.weights.IsAny() && desc.weights.data_type() == DataType::kF32;
  if (may_pack) resolved.weights = packed;
  if (!(resolved.weights == packed)) return RefuseLayout("weights", desc.weights);
  ABSL_RETURN_IF_ERROR(ResolveActivations(kPairLanes, Activations::kVectors, &resolved));
  return resolved;
}

double CostPairs(const Request<ConvolutionDesc>& resolved) {
  const ConvolutionDesc& desc = resolved.desc;
  const Geometry geometry = GeometryOf(desc);
  const VectorUnit unit = VectorUnit::Of(resolved.facts.isa);
  const double direct = DirectCycles(geometry, unit, resolved.machine);
  const double products = direct / resolved.machine.bf16_gain;
  if (IsBf16(desc.src)) return products;
  // Instructions of a line, 32 channels of a pixel, which are rounded first. Whatever the shape, no
  // measurement has put both together above the direct row of f32, so that this one wins.
  constexpr double kLine = 48, kBelowDirect = 0.99;
  const double lines =
      static_cast<double>(geometry.groups * DivUp(geometry.ic, kPairNumbers * kPairLanes) *
                          *CheckedProduct(geometry.in));
  return std::min(products + kLine * lines / resolved.machine.FmasPerCycle(unit.bytes()),
                  kBelowDirect * direct / resolved.facts.traits.handicap);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreatePairs(const Request<ConvolutionDesc>& request) {
  const ConvolutionDesc& desc = request.desc;
  PrimitiveInfo info = InfoOf(request);
  if (IsBf16(desc.src)) return CreateReadingInPlace(desc, request.attributes, std::move(info));
  const Geometry geometry = GeometryOf(desc);
  ABSL_ASSIGN_OR_RETURN(Bf16Stage stage,
                        Bf16Stage::Create(request.facts.name, geometry,
                                          StridesOf(desc.src, kPairLanes, geometry.ic)));
  return CreateWithStage(desc, request.attributes, std::move(stage), std::move(info));
}

}  // namespace tilewire::convolution
