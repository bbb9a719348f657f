// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "absl/functional/function_ref.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/convolution/direct/direct_layouts.h"
#include "engine/primitives/convolution/implementations.h"
#include "engine/primitives/convolution/pooled_destination.h"
#include "engine/primitives/convolution/requirements.h"
#include "engine/primitives/convolution/winograd/winograd_cost.h"
#include "engine/primitives/convolution/winograd/winograd_driver.h"
#include "engine/primitives/convolution/winograd/winograd_plan.h"
#include "engine/primitives/convolution/winograd/winograd_tiles.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/driven_primitive.h"

namespace tilewire::convolution {
namespace {

absl::Status RequireShape(const ConvolutionDesc& desc) {
  const Geometry geometry = GeometryOf(desc);
  const Spatial ones = {1, 1, 1};
  if (desc.src.rank() != 4 || geometry.kernel != Spatial{1, 3, 3}) {
    return Unimplemented("is for kernels of 3x3");
  }
  if (geometry.grouped_weights) return Unimplemented("takes no groups");
  if (geometry.stride != ones) return Unimplemented("is for stride 1");
  if (geometry.tap_step != ones) return Unimplemented("takes no dilation");
  // The plan divides by the number of tiles; no other size of a convolution can be 0.
  if (geometry.batch == 0) return Unimplemented("takes no batch of 0");
  return absl::OkStatus();
}

// Where Winograd's algorithm is asked for, the first row of the table that takes it is chosen.
constexpr double kAskedFor = 0;

int TileOf(const ImplementationFacts& facts) {
  return facts.traits.algorithm == kWinograd4x3 ? 4 : 2;
}

absl::Status RequireWinograd(const ConvolutionDesc& desc, const Attributes& attributes) {
  if (desc.algorithm == ConvolutionAlgorithm::kDirect) {
    return Unimplemented("is a Winograd convolution, direct was asked for");
  }
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src, desc.weights, desc.dst, desc.bias));
  ABSL_RETURN_IF_ERROR(RequireNoOutputScales(attributes));
  return RequireShape(desc);
}

bool Trains(const ConvolutionDesc& desc) {
  return desc.prop_kind == PropKind::kForwardTraining ||
         desc.algorithm == ConvolutionAlgorithm::kTraining;
}

// F(4x4, 3x3) errs by up to 1.4e-6, three times as much as sums of products: gradients of VGG-11 by
// it have nearly three times the error of those by sums.
absl::Status RequireExactness(const ConvolutionDesc& desc, int tile) {
  const bool is_asked_for = desc.algorithm == ConvolutionAlgorithm::kWinograd;
  if (tile != 4 || !Trains(desc) || is_asked_for) return absl::OkStatus();
  return Unimplemented("rounds more than training takes where nothing asks for it");
}

absl::StatusOr<ConvolutionDesc> ResolveTensors(const ConvolutionDesc& desc,
                                               const WinogradLayout& layout) {
  ConvolutionDesc resolved = desc;
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc packed,
                        MemoryDesc::CreateWinograd(desc.weights.dims(), layout));
  if (desc.weights.IsAny()) resolved.weights = packed;
  if (!(resolved.weights == packed)) {
    return Unimplemented("does not take weights as ", desc.weights.ToString());
  }
  ABSL_RETURN_IF_ERROR(ResolveActivations(layout.lanes, Activations::kBlocks, &resolved));
  if (resolved.src.stride(3) != layout.lanes) {
    return Unimplemented("pixels of src are not neighbours");
  }
  return resolved;
}

// `written` is what is written of dst. Without a plan.
WinogradProblem ProblemOf(const ConvolutionDesc& desc, const MemoryDesc& written,
                          const Attributes& attributes, const VectorUnit& unit) {
  WinogradProblem problem{.geometry = GeometryOf(desc), .unit = unit};
  problem.pools = attributes.post_ops.HasMaxPooling();
  if (problem.pools) {  // pooling does not read the rest of an odd size
    for (int d = 1; d < 3; ++d) problem.geometry.out[d] -= problem.geometry.out[d] % 2;
  }
  problem.src = StridesOf(desc.src, unit.lanes(), problem.geometry.ic);
  problem.dst = StridesOf(written, unit.lanes(), problem.geometry.oc);
  problem.short_chains = Trains(desc);
  problem.has_bias = !desc.bias.IsZero();
  problem.post_ops = attributes.post_ops.WithoutMaxPooling();
  return problem;
}

double CyclesOfWeights(const ConvolutionDesc& resolved) {
  if (resolved.prop_kind != PropKind::kForwardTraining) return 0;
  return WinogradWeightsCycles(resolved.weights.SizeBytes());
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateWith(
    const Request<ConvolutionDesc>& request, decltype(&WinogradDriver::Create) create_driver,
    absl::FunctionRef<WinogradPlan(const Geometry&)> plan) {
  ConvolutionDesc written = request.desc;
  ABSL_ASSIGN_OR_RETURN(written.dst, WrittenDst(request.desc.dst, request.attributes));
  WinogradProblem problem =
      ProblemOf(request.desc, written.dst, request.attributes, VectorUnit::Of(request.facts.isa));
  problem.plan = plan(problem.geometry);
  ABSL_ASSIGN_OR_RETURN(auto driver, create_driver(request.facts.name, problem));
  PrimitiveInfo info = InfoOf(request.With(written));
  info.scratchpad_bytes = driver->scratchpad_bytes();
  return MakeDriven(std::move(info), std::move(driver),
                    [](const WinogradDriver& winograd, const DrivenRun& run) {
                      winograd.Run({.src = run.First<const float>(kArgSrc),
                                    .weights = run.args.Find(kArgWeights),
                                    .bias = run.First<const float>(kArgBias),
                                    .dst = run.First<float>(kArgDst)},
                                   run.scratchpad, run.team);
                    });
}

}  // namespace

absl::StatusOr<ConvolutionDesc> ResolveWinograd(const Request<ConvolutionDesc>& request) {
  const ConvolutionDesc& desc = request.desc;
  const VectorUnit unit = VectorUnit::Of(request.facts.isa);
  const int tile = TileOf(request.facts);
  ABSL_RETURN_IF_ERROR(RequireWinograd(desc, request.attributes));
  ABSL_RETURN_IF_ERROR(RequireExactness(desc, tile));
  return ResolveTensors(desc, PlanWinograd(GeometryOf(desc), tile, unit).weights);
}

double CostWinograd(const Request<ConvolutionDesc>& resolved) {
  if (resolved.desc.algorithm == ConvolutionAlgorithm::kWinograd) return kAskedFor;
  return WinogradCycles(GeometryOf(resolved.desc), TileOf(resolved.facts),
                        VectorUnit::Of(resolved.facts.isa), resolved.machine) +
         CyclesOfWeights(resolved.desc);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateWinograd(const Request<ConvolutionDesc>& request) {
  return CreateWith(request, &WinogradDriver::Create, [&request](const Geometry& geometry) {
    return PlanWinograd(geometry, TileOf(request.facts), VectorUnit::Of(request.facts.isa));
  });
}

absl::StatusOr<ConvolutionDesc> ResolveWinogradByPlanes(const Request<ConvolutionDesc>& request) {
  const ConvolutionDesc& desc = request.desc;
  const int tile = TileOf(request.facts);
  ABSL_RETURN_IF_ERROR(RequireWinograd(desc, request.attributes));
  ABSL_RETURN_IF_ERROR(RequireExactness(desc, tile));
  return ResolveTensors(desc, PlanWinogradByPlanes(GeometryOf(desc), tile).weights);
}

double CostWinogradByPlanes(const Request<ConvolutionDesc>& resolved) {
  if (resolved.desc.algorithm == ConvolutionAlgorithm::kWinograd) return kAskedFor;
  return WinogradCyclesByPlanes(GeometryOf(resolved.desc), TileOf(resolved.facts),
                                resolved.machine) +
         CyclesOfWeights(resolved.desc);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateWinogradByPlanes(
    const Request<ConvolutionDesc>& request) {
  return CreateWith(request, &WinogradDriver::CreateByPlanes, [&request](const Geometry& geometry) {
    return PlanWinogradByPlanes(geometry, TileOf(request.facts));
  });
}

}  // namespace tilewire::convolution
