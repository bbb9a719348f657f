// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/convolution/direct_driver.h"
#include "engine/primitives/convolution/direct_layouts.h"
#include "engine/primitives/convolution/implementations.h"
#include "engine/primitives/convolution/regrouped_convolution.h"
#include "engine/primitives/convolution/requirements.h"
#include "engine/primitives/creation.h"

namespace tilewire::convolution {
namespace {

// Immutable.
class DirectConvolution final : public Primitive {
 public:
  DirectConvolution(PrimitiveInfo info, const ConvolutionDesc& desc, DirectDriver driver)
      : Primitive(std::move(info)),
        driver_(std::move(driver)),
        src_offset_(desc.src.offset0()),
        weights_offset_(desc.weights.offset0()),
        bias_offset_(desc.bias.offset0()),
        dst_offset_(desc.dst.offset0() * SizeOf(desc.dst.data_type())),
        has_bias_(!desc.bias.IsZero()) {}

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    driver_.Run(args.Get<const float>(kArgSrc) + src_offset_,
                args.Get<const float>(kArgWeights) + weights_offset_,
                has_bias_ ? args.Get<const float>(kArgBias) + bias_offset_ : nullptr,
                reinterpret_cast<float*>(args.Get<std::byte>(kArgDst) + dst_offset_), team);
  }

  const DirectDriver driver_;
  const int64_t src_offset_, weights_offset_, bias_offset_;
  const int64_t dst_offset_;  // bytes
  const bool has_bias_;
};

DirectProblem ProblemOf(const ConvolutionDesc& desc, const Attributes& attributes,
                        const VectorUnit& unit) {
  DirectProblem problem{.geometry = GeometryOf(desc), .unit = unit};
  problem.tap_channels = unit.lanes();
  problem.src = StridesOf(desc.src, unit.lanes(), problem.geometry.ic);
  problem.dst = StridesInFloats(desc.dst, unit.lanes(), problem.geometry.oc);
  problem.dst_type = desc.dst.data_type();
  const int group = problem.geometry.grouped_weights ? 1 : 0;
  problem.weights = {.group = group == 1 ? desc.weights.stride(0) : 0,
                     .oc_block = desc.weights.stride(group),
                     .ic_block = desc.weights.stride(group + 1)};
  problem.has_bias = !desc.bias.IsZero();
  problem.post_ops = attributes.post_ops;
  return problem;
}

// Per pixel the row takes a step for each output channel, tap and block of input channels, and
// three to add up an output's lanes. Others take one for each tap and input channel, or with
// Winograd's algorithm a quarter of that and its transforms, and a few to store a whole vector.
absl::Status RequireFewOutputs(const Geometry& geometry, int lanes) {
  constexpr int64_t kFewestVectors = 4, kLaneSums = 3, kStore = 6, kTransforms = 20;
  const int64_t blocks = DivUp(geometry.ic, lanes), taps = *CheckedProduct(geometry.kernel);
  const bool may_transform = geometry.kernel == Spatial{1, 3, 3} &&
                             geometry.stride == Spatial{1, 1, 1} &&
                             geometry.tap_step == Spatial{1, 1, 1};
  const int64_t others =
      kStore +
      (may_transform ? geometry.ic * taps / 4 + kTransforms * (blocks + 1) : geometry.ic * taps);
  if (geometry.grouped_weights || geometry.ic < lanes || geometry.oc > lanes ||
      *CheckedProduct(geometry.out) < kFewestVectors * lanes ||
      geometry.oc * (blocks * taps + kLaneSums) >= others) {
    return absl::UnimplementedError("is for few output channels of many pixels, without groups");
  }
  return absl::OkStatus();
}

// The row that needs AVX-512 BF16 writes bf16, the others f32.
absl::Status RequireDepthwiseTypes(const ConvolutionDesc& desc, const Attributes& attributes,
                                   const ImplementationFacts& facts) {
  const bool writes_bf16 = facts.isa.Includes(cpu::Isa::kAvx512Bf16);
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src, desc.weights, desc.bias));
  ABSL_RETURN_IF_ERROR(RequireType(writes_bf16 ? DataType::kBf16 : DataType::kF32, {&desc.dst}));
  ABSL_RETURN_IF_ERROR(RequireNoOutputScales(attributes));
  if (writes_bf16 && desc.dst.IsPlain()) return RefuseLayout("dst", desc.dst);
  return RequireDirect(desc);
}

// Groups begin at the first lane of a block.
bool GroupsAreAligned(const DirectProblem& problem, bool plain_src) {
  const Geometry& geometry = problem.geometry;
  const int lanes = problem.unit.lanes();
  return geometry.groups == 1 ||
         (geometry.oc % lanes == 0 && (plain_src || geometry.ic % lanes == 0));
}

absl::StatusOr<std::unique_ptr<Primitive>> AroundDriver(const ConvolutionDesc& desc,
                                                        const DirectProblem& problem,
                                                        PrimitiveInfo info) {
  ABSL_ASSIGN_OR_RETURN(DirectDriver driver, DirectDriver::Create(info.name, problem));
  info.code_bytes = driver.code_bytes();
  return std::make_unique<DirectConvolution>(std::move(info), desc, std::move(driver));
}

}  // namespace

absl::StatusOr<ConvolutionDesc> ResolveDirect(const ConvolutionDesc& desc,
                                              const Attributes& attributes,
                                              const ImplementationFacts& facts) {
  ABSL_RETURN_IF_ERROR(RequireDirectF32(desc, attributes));
  return ResolveLayouts(desc, VectorUnit::Of(facts.isa), WeightsKind::kDense);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateDirect(const ConvolutionDesc& desc,
                                                        const Attributes& attributes,
                                                        const ImplementationFacts& facts) {
  const VectorUnit unit = VectorUnit::Of(facts.isa);
  PrimitiveInfo info = InfoOf(desc, attributes, facts);
  const DirectProblem problem = ProblemOf(desc, attributes, unit);
  if (GroupsAreAligned(problem, desc.src.IsPlain()))
    return AroundDriver(desc, problem, std::move(info));
  return CreateRegrouped(desc, problem, std::move(info));
}

absl::StatusOr<ConvolutionDesc> ResolveFirstLayer(const ConvolutionDesc& desc,
                                                  const Attributes& attributes,
                                                  const ImplementationFacts& facts) {
  constexpr int kMostChannels = 4;
  ABSL_RETURN_IF_ERROR(RequireDirectF32(desc, attributes));
  const Geometry geometry = GeometryOf(desc);
  if (geometry.grouped_weights || geometry.ic > kMostChannels) {
    return absl::UnimplementedError("is for 1 to 4 input channels and no groups");
  }
  if (geometry.kernel[0] > 1) return absl::UnimplementedError("is for kernels without depth");
  return ResolveLayouts(desc, VectorUnit::Of(facts.isa), WeightsKind::kFirstLayer);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateFirstLayer(const ConvolutionDesc& desc,
                                                            const Attributes& attributes,
                                                            const ImplementationFacts& facts) {
  const VectorUnit unit = VectorUnit::Of(facts.isa);
  DirectProblem problem = ProblemOf(desc, attributes, unit);
  problem.tap_channels = static_cast<int>(problem.geometry.ic);
  return AroundDriver(desc, problem, InfoOf(desc, attributes, facts));
}

absl::StatusOr<ConvolutionDesc> ResolveFewOutputs(const ConvolutionDesc& desc,
                                                  const Attributes& attributes,
                                                  const ImplementationFacts& facts) {
  const int lanes = VectorUnit::Of(facts.isa).lanes();
  ABSL_RETURN_IF_ERROR(RequireDirectF32(desc, attributes));
  ABSL_RETURN_IF_ERROR(RequireFewOutputs(GeometryOf(desc), lanes));
  return ResolveLayouts(desc, VectorUnit::Of(facts.isa), WeightsKind::kFewOutputs);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateFewOutputs(const ConvolutionDesc& desc,
                                                            const Attributes& attributes,
                                                            const ImplementationFacts& facts) {
  DirectProblem problem = ProblemOf(desc, attributes, VectorUnit::Of(facts.isa));
  problem.few_outputs = true;
  problem.tap_channels = 1;
  problem.dst.block = desc.dst.stride(1);
  return AroundDriver(desc, problem, InfoOf(desc, attributes, facts));
}

absl::StatusOr<ConvolutionDesc> ResolveDepthwise(const ConvolutionDesc& desc,
                                                 const Attributes& attributes,
                                                 const ImplementationFacts& facts) {
  ABSL_RETURN_IF_ERROR(RequireDepthwiseTypes(desc, attributes, facts));
  if (!GeometryOf(desc).IsDepthwise())
    return absl::UnimplementedError("is for one channel a group");
  return ResolveLayouts(desc, VectorUnit::Of(facts.isa), WeightsKind::kDepthwise);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateDepthwise(const ConvolutionDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts) {
  const VectorUnit unit = VectorUnit::Of(facts.isa);
  DirectProblem problem = ProblemOf(desc, attributes, unit);
  problem.depthwise = true;
  problem.packed_src = desc.src.IsPlain();
  problem.packed_dst = desc.dst.IsPlain();
  problem.tap_channels = 1;
  problem.geometry.oc = problem.geometry.groups;
  problem.geometry.groups = 1;
  problem.weights = {.group = 0, .oc_block = desc.weights.stride(0), .ic_block = 0};
  return AroundDriver(desc, problem, InfoOf(desc, attributes, facts));
}

}  // namespace tilewire::convolution
