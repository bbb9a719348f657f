// SPDX-License-Identifier: Apache-2.0
//
// The direct convolution by products of pairs of bf16 numbers: its problem, and the primitive that
// rounds a src of f32 to pairs first, in the scratchpad, a few images at a time.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_BF16_BF16_PAIRS_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_BF16_BF16_PAIRS_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/kernels/planes/bf16_rounding.h"
#include "engine/primitives/convolution/convolution.h"
#include "engine/primitives/convolution/direct/direct_driver.h"
#include "engine/primitives/convolution/direct/direct_layouts.h"
#include "engine/primitives/convolution/implementations.h"
#include "engine/primitives/convolution/requirements.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/driven_primitive.h"

namespace tilewire::convolution {

inline constexpr int kPairLanes = 16;  // of f32 in a register

// First layers, which read a plain src of f32 and weights in a layout of their own: `desc` of the
// request with that of `weights_of`, where its geometry fulfils `require`.
inline absl::StatusOr<ConvolutionDesc> ResolveRoundedImage(
    const Request<ConvolutionDesc>& request, absl::Status (*require)(const Geometry&),
    absl::StatusOr<MemoryDesc> (*weights_of)(const MemoryDesc&)) {
  const ConvolutionDesc& desc = request.desc;
  ABSL_RETURN_IF_ERROR(RequireF32OrBf16(desc));
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src));
  ABSL_RETURN_IF_ERROR(RequireNoOutputScales(request.attributes));
  ABSL_RETURN_IF_ERROR(RequireDirect(desc));
  ABSL_RETURN_IF_ERROR(require(GeometryOf(desc)));
  if (desc.src.rank() > 4) return Unimplemented("is for images without depth");
  ConvolutionDesc resolved = desc;
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc packed, weights_of(desc.weights));
  if (desc.weights.IsAny() && desc.weights.data_type() == DataType::kF32) resolved.weights = packed;
  if (!(resolved.weights == packed)) return RefuseLayout("weights", desc.weights);
  const int lanes = VectorUnit::Of(request.facts.isa).lanes();
  ABSL_RETURN_IF_ERROR(ResolveActivations(lanes, Activations::kPlainSrc, &resolved));
  return resolved;
}

// For weights in pairs of input channels; without geometry and strides of src.
inline DirectProblem PairsProblemOf(const ConvolutionDesc& desc, const Attributes& attributes) {
  const Geometry geometry = GeometryOf(desc);
  const int group = geometry.grouped_weights ? 1 : 0;
  DirectProblem problem{.unit = VectorUnit::Of(cpu::Isa::kAvx512Bf16)};
  problem.dst = StridesInFloats(desc.dst, kPairLanes, geometry.oc);
  problem.dst_type = desc.dst.data_type();
  problem.weights = {.group = group == 1 ? desc.weights.stride(0) / kPairNumbers : 0,
                     .oc_block = desc.weights.stride(group) / kPairNumbers,
                     .ic_block = desc.weights.stride(group + 1) / kPairNumbers};
  problem.has_bias = !desc.bias.IsZero();
  problem.pairs = true;
  problem.post_ops = attributes.post_ops;
  return problem;
}

// A driver and the rounded copy that it reads: a Bf16Stage or Bf16Rows.
template <typename Copy>
struct RoundedDriver {
  // The scratchpad holds the copies of `images` images.
  void Run(const DrivenRun& run) const {
    const MemoryDesc& src_desc = run.primitive.Desc(kArgSrc);
    const MemoryDesc& dst_desc = run.primitive.Desc(kArgDst);
    const auto* src = run.First<const float>(kArgSrc);
    auto* dst = run.First<std::byte>(kArgDst);
    const int64_t dst_image = dst_desc.stride(0) * SizeOf(dst_desc.data_type());  // bytes
    for (int64_t image = 0; image < src_desc.dim(0); image += images) {
      copy.Run(src + image * src_desc.stride(0), images, run.scratchpad, run.team);
      driver.Run(reinterpret_cast<const float*>(run.scratchpad),
                 run.First<const float>(kArgWeights), run.First<const float>(kArgBias),
                 reinterpret_cast<float*>(dst + image * dst_image), run.team);
    }
  }
  int64_t code_bytes() const { return driver.code_bytes() + copy.code_bytes(); }

  DirectDriver driver;
  Copy copy;
  int64_t images;
};

// `problem` without geometry and strides of src, which are those of the copy.
//   kUnimplemented, kResourceExhausted  as DirectDriver; the copies are too large
template <typename Copy>
absl::StatusOr<std::unique_ptr<Primitive>> CreateRounded(DirectProblem problem, Copy copy,
                                                         PrimitiveInfo info) {
  problem.geometry = copy.CopiedGeometry();
  const int64_t images = ImagesAtOnce(problem.geometry.batch, copy.ImageBytes());
  const auto bytes = CheckedMul(images, copy.ImageBytes());
  if (!bytes) return ResourceExhausted("the rounded copy of src is too large");
  problem.geometry.batch = images;
  problem.src = copy.CopiedStrides();
  ABSL_ASSIGN_OR_RETURN(DirectDriver driver, DirectDriver::Create(info.name, problem));
  info.scratchpad_bytes = *bytes;
  return MakeDriven(std::move(info),
                    RoundedDriver<Copy>{std::move(driver), std::move(copy), images});
}

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_BF16_BF16_PAIRS_H_
