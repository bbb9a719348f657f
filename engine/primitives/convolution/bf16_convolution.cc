// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/primitives/convolution/bf16_stage.h"
#include "engine/primitives/convolution/direct_driver.h"
#include "engine/primitives/convolution/direct_layouts.h"
#include "engine/primitives/convolution/implementations.h"
#include "engine/primitives/convolution/requirements.h"
#include "engine/primitives/convolution/winograd_plan.h"
#include "engine/primitives/creation.h"

namespace tilewire::convolution {
namespace {

constexpr int kPairLanes = 16;  // of f32 in a register

// Immutable. The scratchpad holds the rounded copy of the images of one turn.
class PairsConvolution final : public Primitive {
 public:
  PairsConvolution(PrimitiveInfo info, const ConvolutionDesc& desc, int64_t images, Bf16Stage stage,
                   DirectDriver driver)
      : Primitive(std::move(info)),
        desc_(desc),
        images_(images),
        stage_(std::move(stage)),
        driver_(std::move(driver)) {}

 private:
  void Run(const ExecuteArgs& args, std::byte* scratchpad,
           const threading::Team& team) const override {
    const float* src = args.Get<const float>(kArgSrc) + desc_.src.offset0();
    const float* bias =
        desc_.bias.IsZero() ? nullptr : args.Get<const float>(kArgBias) + desc_.bias.offset0();
    float* dst = args.Get<float>(kArgDst) + desc_.dst.offset0();
    for (int64_t image = 0; image < desc_.src.dim(0); image += images_) {
      stage_.Run(src + image * desc_.src.stride(0), images_, scratchpad, team);
      driver_.Run(reinterpret_cast<const float*>(scratchpad), args.Get<const float>(kArgWeights),
                  bias, dst + image * desc_.dst.stride(0), team);
    }
  }

  const ConvolutionDesc desc_;
  const int64_t images_;  // of one turn
  const Bf16Stage stage_;
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

absl::Status RequireWholeVectors(const ConvolutionDesc& desc) {
  const Geometry geometry = GeometryOf(desc);
  if (geometry.ic < kPairLanes || geometry.oc < kPairLanes)
    return absl::UnimplementedError("is for 16 input and output channels per group and more");
  const bool aligned = geometry.ic % kPairLanes == 0 && geometry.oc % kPairLanes == 0;
  if (geometry.groups > 1 && !aligned)
    return absl::UnimplementedError("is for groups of whole vectors of channels");
  if (geometry.batch == 0) return absl::UnimplementedError("takes no batch of 0");
  return absl::OkStatus();
}

DirectProblem PairsProblemOf(const ConvolutionDesc& desc, const Attributes& attributes,
                             const Bf16Stage& stage, int64_t images) {
  DirectProblem problem{.geometry = stage.StagedGeometry(),
                        .unit = VectorUnit::Of(cpu::Isa::kAvx512Bf16)};
  const int group = problem.geometry.grouped_weights ? 1 : 0;
  problem.geometry.batch = images;
  problem.src = stage.StagedStrides();
  problem.dst = StridesOf(desc.dst, kPairLanes, problem.geometry.oc);
  problem.weights = {.group = group == 1 ? desc.weights.stride(0) / kPairNumbers : 0,
                     .oc_block = desc.weights.stride(group) / kPairNumbers,
                     .ic_block = desc.weights.stride(group + 1) / kPairNumbers};
  problem.has_bias = !desc.bias.IsZero();
  problem.pairs = true;
  problem.post_ops = attributes.post_ops;
  return problem;
}

bool MayTransform(const ConvolutionDesc& desc) {
  const Geometry geometry = GeometryOf(desc);
  const Spatial ones = {1, 1, 1};
  return desc.algorithm == ConvolutionAlgorithm::kAuto && desc.src.rank() == 4 &&
         geometry.kernel == Spatial{1, 3, 3} && !geometry.grouped_weights &&
         geometry.stride == ones && geometry.tap_step == ones;
}

}  // namespace

absl::StatusOr<ConvolutionDesc> ResolvePairs(const ConvolutionDesc& desc,
                                             const Attributes& attributes,
                                             const ImplementationFacts& facts) {
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src, desc.dst, desc.bias));
  ABSL_RETURN_IF_ERROR(RequireNoOutputScales(attributes));
  ABSL_RETURN_IF_ERROR(RequireDirect(desc));
  ABSL_RETURN_IF_ERROR(RequireWholeVectors(desc));
  if (MayTransform(desc)) {
    ABSL_RETURN_IF_ERROR(
        RequirePairsFasterThanWinograd(GeometryOf(desc), VectorUnit::Of(facts.isa)));
  }
  ConvolutionDesc resolved = desc;
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc packed, PairedWeights(desc));
  const bool may_pack = desc.weights.IsAny() && desc.weights.data_type() == DataType::kF32;
  if (may_pack) resolved.weights = packed;
  if (!(resolved.weights == packed)) return RefuseLayout("weights", desc.weights);
  ABSL_RETURN_IF_ERROR(ResolveActivations(kPairLanes, Activations::kVectors, &resolved));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreatePairs(const ConvolutionDesc& desc,
                                                       const Attributes& attributes,
                                                       const ImplementationFacts& facts) {
  const Geometry geometry = GeometryOf(desc);
  ABSL_ASSIGN_OR_RETURN(
      Bf16Stage stage,
      Bf16Stage::Create(facts.name, geometry, StridesOf(desc.src, kPairLanes, geometry.ic)));
  const int64_t images = ImagesAtOnce(geometry.batch, stage.ImageBytes());
  ABSL_ASSIGN_OR_RETURN(
      DirectDriver driver,
      DirectDriver::Create(facts.name, PairsProblemOf(desc, attributes, stage, images)));
  PrimitiveInfo info = InfoOf(desc, attributes, facts);
  info.code_bytes = driver.code_bytes() + stage.code_bytes();
  const auto bytes = CheckedMul(images, stage.ImageBytes());
  if (!bytes) return absl::ResourceExhaustedError("the rounded copy of src is too large");
  info.scratchpad_bytes = *bytes;
  return std::make_unique<PairsConvolution>(std::move(info), desc, images, std::move(stage),
                                            std::move(driver));
}

}  // namespace tilewire::convolution
