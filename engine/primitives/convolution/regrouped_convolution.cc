// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/regrouped_convolution.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/convolution/direct_layouts.h"
#include "engine/threading/stop.h"

namespace tilewire::convolution {
namespace {

int64_t Product(const Spatial& size) { return size[0] * size[1] * size[2]; }

// One image, group after group, each in whole blocks.
ActivationStrides AlignedStrides(const Spatial& size, int64_t group_channels, int lanes) {
  ActivationStrides strides;
  strides.spatial = {size[1] * size[2] * lanes, size[2] * lanes, lanes};
  strides.block = Product(size) * lanes;
  strides.group = DivUp(group_channels, lanes) * strides.block;
  return strides;
}

void CopyChannel(const float* from, const Spatial& from_strides, float* to,
                 const Spatial& to_strides, const Spatial& size) {
  for (int64_t d = 0; d < size[0]; ++d) {
    for (int64_t h = 0; h < size[1]; ++h) {
      const float* f = from + d * from_strides[0] + h * from_strides[1];
      float* t = to + d * to_strides[0] + h * to_strides[1];
      for (int64_t w = 0; w < size[2]; ++w) t[w * to_strides[2]] = f[w * from_strides[2]];
    }
  }
}

void ZeroChannel(float* to, const Spatial& strides, const Spatial& size) {
  static constexpr float kZero = 0;
  CopyChannel(&kZero, {0, 0, 0}, to, strides, size);
}

// Immutable.
class RegroupedConvolution final : public Primitive {
 public:
  RegroupedConvolution(PrimitiveInfo info, const ConvolutionDesc& desc, const DirectProblem& outer,
                       const DirectProblem& inner, int64_t dst_scratch_offset, DirectDriver driver)
      : Primitive(std::move(info)),
        driver_(std::move(driver)),
        outer_(outer),
        inner_(inner),
        dst_scratch_offset_(dst_scratch_offset),
        src_offset_(desc.src.offset0()),
        weights_offset_(desc.weights.offset0()),
        bias_offset_(desc.bias.offset0()),
        dst_offset_(desc.dst.offset0()) {}

 private:
  void Run(const ExecuteArgs& args, std::byte* scratchpad,
           const threading::Team& team) const override {
    const Geometry& geometry = outer_.geometry;
    float* src_scratch = reinterpret_cast<float*>(scratchpad);
    float* dst_scratch = src_scratch + dst_scratch_offset_;
    for (int64_t n = 0; n < geometry.batch; ++n) {
      const float* src = args.Get<const float>(kArgSrc) + src_offset_ + n * outer_.src.image;
      float* dst = args.Get<float>(kArgDst) + dst_offset_ + n * outer_.dst.image;
      Gather(src, outer_.src, src_scratch, inner_.src, geometry.ic, geometry.in, team);
      if (outer_.post_ops.HasSum()) {
        Gather(dst, outer_.dst, dst_scratch, inner_.dst, geometry.oc, geometry.out, team);
      }
      driver_.Run(src_scratch, args.Get<const float>(kArgWeights) + weights_offset_,
                  outer_.has_bias ? args.Get<const float>(kArgBias) + bias_offset_ : nullptr,
                  dst_scratch, team);
      Scatter(dst_scratch, dst, team);
    }
  }

  void Gather(const float* from, const ActivationStrides& from_strides, float* to,
              const ActivationStrides& to_strides, int64_t group_channels, const Spatial& size,
              const threading::Team& team) const {
    const int lanes = outer_.unit.lanes();
    team.ParallelFor(outer_.geometry.groups, [&](int64_t group) {
      for (int64_t c = 0; c < group_channels && !threading::Stopped(); ++c) {
        CopyChannel(from + ChannelOffset(from_strides, lanes, group * group_channels + c),
                    from_strides.spatial,
                    to + group * to_strides.group + ChannelOffset(to_strides, lanes, c),
                    to_strides.spatial, size);
      }
    });
  }

  // By blocks of dst, so that no two threads write to one cache line.
  void Scatter(const float* from, float* dst, const threading::Team& team) const {
    const Geometry& geometry = outer_.geometry;
    const int lanes = outer_.unit.lanes();
    const int64_t channels = geometry.groups * geometry.oc;
    team.ParallelFor(DivUp(channels, lanes), [&](int64_t block) {
      for (int64_t c = block * lanes; c < (block + 1) * lanes; ++c) {
        float* to = dst + ChannelOffset(outer_.dst, lanes, c);
        if (c >= channels) {
          ZeroChannel(to, outer_.dst.spatial, geometry.out);
          continue;
        }
        CopyChannel(from + c / geometry.oc * inner_.dst.group +
                        ChannelOffset(inner_.dst, lanes, c % geometry.oc),
                    inner_.dst.spatial, to, outer_.dst.spatial, geometry.out);
      }
    });
  }

  const DirectDriver driver_;
  const DirectProblem outer_, inner_;
  const int64_t dst_scratch_offset_;  // elements
  const int64_t src_offset_, weights_offset_, bias_offset_, dst_offset_;
};

// Elements of all groups of one image, in whole cache lines; nullopt on overflow.
std::optional<int64_t> ScratchElements(const Geometry& geometry, int64_t group_channels,
                                       const Spatial& size, int lanes) {
  const std::optional<int64_t> count = CheckedProduct(
      {geometry.groups, DivUp(group_channels, lanes), int64_t{lanes}, size[0], size[1], size[2]});
  if (!count || !CheckedMul(*count, 32)) return std::nullopt;
  return RoundUp(*count, 16);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Primitive>> CreateRegrouped(const ConvolutionDesc& desc,
                                                           const DirectProblem& problem,
                                                           PrimitiveInfo info) {
  const Geometry& geometry = problem.geometry;
  const int lanes = problem.unit.lanes();
  const std::optional<int64_t> src = ScratchElements(geometry, geometry.ic, geometry.in, lanes);
  const std::optional<int64_t> dst = ScratchElements(geometry, geometry.oc, geometry.out, lanes);
  if (!src || !dst)
    return absl::ResourceExhaustedError("the scratchpad for aligned groups is too large");
  DirectProblem inner = problem;
  inner.geometry.batch = 1;
  inner.src = AlignedStrides(geometry.in, geometry.ic, lanes);
  inner.dst = AlignedStrides(geometry.out, geometry.oc, lanes);
  ABSL_ASSIGN_OR_RETURN(DirectDriver driver, DirectDriver::Create(info.name, inner));
  info.code_bytes = driver.code_bytes();
  info.scratchpad_bytes = (*src + *dst) * static_cast<int64_t>(sizeof(float));
  return std::make_unique<RegroupedConvolution>(std::move(info), desc, problem, inner, *src,
                                                std::move(driver));
}

}  // namespace tilewire::convolution
