// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/primitives/convolution/bf16/bf16_pairs.h"
#include "engine/primitives/convolution/bf16/bf16_stage.h"
#include "engine/primitives/convolution/direct/direct_cost.h"
#include "engine/primitives/convolution/direct/direct_layouts.h"
#include "engine/primitives/convolution/implementations.h"
#include "engine/primitives/convolution/requirements.h"
#include "engine/primitives/creation.h"

namespace tilewire::convolution {
namespace {

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
  // measurement has put both together above the direct row of f32, so that this one wins: but for
  // CPUs that take longer for the products alone.
  constexpr double kLine = 48, kBelowDirect = 0.99;
  const double lines =
      static_cast<double>(geometry.groups * DivUp(geometry.ic, kPairNumbers * kPairLanes) *
                          *CheckedProduct(geometry.in));
  const double cycles = products + kLine * lines / resolved.machine.FmasPerCycle(unit.bytes());
  if (resolved.machine.bf16_gain < 1) return cycles;
  return std::min(cycles, kBelowDirect * direct / resolved.facts.traits.handicap);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreatePairs(const Request<ConvolutionDesc>& request) {
  const ConvolutionDesc& desc = request.desc;
  const Geometry geometry = GeometryOf(desc);
  DirectProblem problem = PairsProblemOf(desc, request.attributes);
  if (IsBf16(desc.src)) {  // read as it lies
    problem.geometry = geometry;
    problem.geometry.ic = DivUp(geometry.ic, kPairNumbers);
    problem.src = StridesInFloats(desc.src, kPairLanes, geometry.ic);
    return CreateDirectPrimitive(problem, InfoOf(request));
  }
  ABSL_ASSIGN_OR_RETURN(Bf16Stage stage,
                        Bf16Stage::Create(request.facts.name, geometry,
                                          StridesOf(desc.src, kPairLanes, geometry.ic)));
  return CreateRounded(std::move(problem), std::move(stage), InfoOf(request));
}

}  // namespace tilewire::convolution
