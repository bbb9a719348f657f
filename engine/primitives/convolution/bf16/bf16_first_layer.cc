// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/convolution/bf16/bf16_rows.h"
#include "engine/primitives/convolution/direct/direct_driver.h"
#include "engine/primitives/convolution/direct/direct_layouts.h"
#include "engine/primitives/convolution/implementations.h"
#include "engine/primitives/convolution/requirements.h"
#include "engine/primitives/creation.h"

namespace tilewire::convolution {
namespace {

// Immutable. The scratchpad holds the rounded copy of the images of a turn.
class Bf16FirstLayer final : public Primitive {
 public:
  Bf16FirstLayer(PrimitiveInfo info, const ConvolutionDesc& desc, int64_t images, Bf16Rows rows,
                 DirectDriver driver)
      : Primitive(std::move(info)),
        desc_(desc),
        images_(images),
        rows_(std::move(rows)),
        driver_(std::move(driver)) {}

 private:
  void Run(const ExecuteArgs& args, std::byte* scratchpad,
           const threading::Team& team) const override {
    const auto* src = First<const float>(args, kArgSrc);
    auto* dst = First<std::byte>(args, kArgDst);
    const int64_t dst_image = desc_.dst.stride(0) * SizeOf(desc_.dst.data_type());  // bytes
    for (int64_t image = 0; image < desc_.src.dim(0); image += images_) {
      rows_.Run(src + image * desc_.src.stride(0), images_, scratchpad, team);
      driver_.Run(reinterpret_cast<const float*>(scratchpad), First<const float>(args, kArgWeights),
                  First<const float>(args, kArgBias),
                  reinterpret_cast<float*>(dst + image * dst_image), team);
    }
  }

  const ConvolutionDesc desc_;
  const int64_t images_;  // of one turn
  const Bf16Rows rows_;
  const DirectDriver driver_;
};

absl::Status RequirePairsAlongWidth(const Geometry& geometry) {
  constexpr int64_t kMostChannels = 4, kFewestTaps = 3;
  if (geometry.grouped_weights || geometry.ic > kMostChannels)
    return Unimplemented("is for 1 to 4 input channels and no groups");
  if (geometry.in[0] > 1 || geometry.kernel[0] > 1)
    return Unimplemented("is for images without depth");
  if (geometry.stride[2] != kPairNumbers || geometry.tap_step[2] != 1 ||
      geometry.kernel[2] < kFewestTaps)
    return Unimplemented("is for 3 taps and more along the width with a stride of 2");
  if (geometry.batch == 0) return Unimplemented("takes no batch of 0");
  return absl::OkStatus();
}

// "AcDb16a2d"
absl::StatusOr<MemoryDesc> WeightsPairedAlongWidth(const MemoryDesc& weights) {
  return MemoryDesc::CreatePattern(weights.dims(), DataType::kBf16,
                                   weights.rank() == 4 ? "AcDb16a2d" : "ACb16a2c");
}

}  // namespace

absl::StatusOr<ConvolutionDesc> ResolveBf16FirstLayer(const Request<ConvolutionDesc>& request) {
  const ConvolutionDesc& desc = request.desc;
  ABSL_RETURN_IF_ERROR(RequireF32OrBf16(desc));
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src));
  ABSL_RETURN_IF_ERROR(RequireNoOutputScales(request.attributes));
  ABSL_RETURN_IF_ERROR(RequireDirect(desc));
  ABSL_RETURN_IF_ERROR(RequirePairsAlongWidth(GeometryOf(desc)));
  if (desc.src.rank() > 4) return Unimplemented("is for images without depth");
  ConvolutionDesc resolved = desc;
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc packed, WeightsPairedAlongWidth(desc.weights));
  if (desc.weights.IsAny() && desc.weights.data_type() == DataType::kF32) resolved.weights = packed;
  if (!(resolved.weights == packed)) return RefuseLayout("weights", desc.weights);
  const int lanes = VectorUnit::Of(request.facts.isa).lanes();
  ABSL_RETURN_IF_ERROR(ResolveActivations(lanes, Activations::kPlainSrc, &resolved));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateBf16FirstLayer(
    const Request<ConvolutionDesc>& request) {
  const ConvolutionDesc& desc = request.desc;
  const Geometry geometry = GeometryOf(desc);
  const VectorUnit unit = VectorUnit::Of(request.facts.isa);
  ABSL_ASSIGN_OR_RETURN(Bf16Rows rows,
                        Bf16Rows::Create(request.facts.name, geometry,
                                         StridesOf(desc.src, unit.lanes(), geometry.ic)));
  const int64_t images = ImagesAtOnce(geometry.batch, rows.ImageBytes());
  DirectProblem problem{.geometry = rows.CopiedGeometry(), .unit = unit};
  problem.geometry.batch = images;
  problem.src = rows.CopiedStrides();
  problem.dst = StridesInFloats(desc.dst, unit.lanes(), geometry.oc);
  problem.dst_type = desc.dst.data_type();
  problem.weights.oc_block = desc.weights.stride(0) / kPairNumbers;
  problem.has_bias = !desc.bias.IsZero();
  problem.pairs = true;
  problem.tap_channels = static_cast<int>(geometry.ic);
  problem.post_ops = request.attributes.post_ops;
  ABSL_ASSIGN_OR_RETURN(DirectDriver driver, DirectDriver::Create(request.facts.name, problem));
  PrimitiveInfo info = WithCode(InfoOf(request), driver, rows);
  const auto bytes = CheckedMul(images, rows.ImageBytes());
  if (!bytes) return ResourceExhausted("the rounded copy of src is too large");
  info.scratchpad_bytes = *bytes;
  return std::make_unique<Bf16FirstLayer>(std::move(info), desc, images, std::move(rows),
                                          std::move(driver));
}

}  // namespace tilewire::convolution
