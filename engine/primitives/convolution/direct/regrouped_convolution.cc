// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/direct/regrouped_convolution.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "engine/base/aligned_buffer.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/kernels/moves/channel_gather.h"
#include "engine/memory/layout.h"
#include "engine/primitives/convolution/direct/direct_layouts.h"
#include "engine/primitives/reordered.h"

namespace tilewire::convolution {
namespace {

using threading::Team;

// One image, group after group, each in whole blocks.
absl::StatusOr<MemoryDesc> InWholeBlocks(const MemoryDesc& tensor, int64_t groups, int64_t lanes) {
  Dims dims = tensor.dims();
  dims[0] = 1;
  dims[1] = groups * RoundUp(dims[1] / groups, lanes);
  return MemoryDesc::CreatePattern(dims, tensor.data_type(), LayoutPattern(tensor));
}

// Where the channels of groups in whole blocks come from. A group ends with copies of its last
// channel, which nothing reads.
std::vector<ChannelSource> ChannelsOfBlocks(int64_t groups, int64_t channels, int64_t lanes) {
  std::vector<ChannelSource> sources;
  for (int64_t group = 0; group < groups; ++group) {
    for (int64_t c = 0; c < RoundUp(channels, lanes); ++c)
      sources.push_back({0, group * channels + std::min(c, channels - 1)});
  }
  return sources;
}

// The other way round.
std::vector<ChannelSource> ChannelsOfGroups(int64_t groups, int64_t channels, int64_t lanes) {
  std::vector<ChannelSource> sources;
  for (int64_t group = 0; group < groups; ++group) {
    for (int64_t c = 0; c < channels; ++c)
      sources.push_back({0, group * RoundUp(channels, lanes) + c});
  }
  return sources;
}

// An image of the caller's, and its groups in whole blocks: the image itself where they are.
// Immutable.
struct Regrouping {
  MemoryDesc blocks;
  std::optional<ChannelGather> in, out;  // copies to the blocks, and from them
  int64_t image_bytes = 0;               // between images of the caller's
  int64_t scratch_bytes = 0;             // of the blocks

  int64_t code_bytes() const { return (in ? in->code_bytes() : 0) + (out ? out->code_bytes() : 0); }
};

struct Copies {
  bool in = false, out = false;
};

absl::StatusOr<Regrouping> RegroupingOf(absl::string_view name, const MemoryDesc& tensor,
                                        const DirectProblem& problem, const Copies& copies) {
  const int64_t groups = problem.geometry.groups, lanes = problem.unit.lanes();
  const int64_t channels = tensor.dim(1) / groups;
  Regrouping regrouping;
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc image, FirstImages(tensor, 1));
  regrouping.blocks = image;
  regrouping.image_bytes = tensor.stride(0) * SizeOf(tensor.data_type());
  if (channels % lanes == 0) return regrouping;
  absl::StatusOr<MemoryDesc> blocks = InWholeBlocks(image, groups, lanes);
  if (!blocks.ok()) return ResourceExhausted("the scratchpad for aligned groups is too large");
  regrouping.blocks = *std::move(blocks);
  regrouping.scratch_bytes = RoundUp(regrouping.blocks.SizeBytes(), AlignedBuffer::kAlignment);
  if (copies.in) {
    ABSL_ASSIGN_OR_RETURN(regrouping.in,
                          ChannelGather::Create(name, problem.unit, {image}, regrouping.blocks,
                                                ChannelsOfBlocks(groups, channels, lanes)));
  }
  if (copies.out) {
    ABSL_ASSIGN_OR_RETURN(regrouping.out,
                          ChannelGather::Create(name, problem.unit, {regrouping.blocks}, image,
                                                ChannelsOfGroups(groups, channels, lanes)));
  }
  return regrouping;
}

// Immutable.
class RegroupedConvolution final : public Primitive {
 public:
  RegroupedConvolution(PrimitiveInfo info, Regrouping src, Regrouping dst, DirectDriver driver)
      : Primitive(std::move(info)),
        driver_(std::move(driver)),
        src_(std::move(src)),
        dst_(std::move(dst)) {}

 private:
  void Run(const ExecuteArgs& args, std::byte* scratchpad, const Team& team) const override {
    for (int64_t n = 0; n < Desc(kArgSrc).dim(0); ++n) {
      const std::byte* src = args.Get<const std::byte>(kArgSrc) + n * src_.image_bytes;
      std::byte* const dst = args.Get<std::byte>(kArgDst) + n * dst_.image_bytes;
      std::byte* const to = dst_.out ? scratchpad + src_.scratch_bytes : dst;
      if (src_.in) src_.in->Run({src}, scratchpad, team);
      if (dst_.in) dst_.in->Run({dst}, to, team);
      Convolve(args, src_.in ? scratchpad : src, to, team);
      if (dst_.out) dst_.out->Run({to}, dst, team);
    }
  }

  void Convolve(const ExecuteArgs& args, const std::byte* src, std::byte* dst,
                const Team& team) const {
    driver_.Run(reinterpret_cast<const float*>(src) + src_.blocks.offset0(),
                First<const float>(args, kArgWeights), First<const float>(args, kArgBias),
                reinterpret_cast<float*>(dst) + dst_.blocks.offset0(), team);
  }

  const DirectDriver driver_;
  const Regrouping src_, dst_;
};

}  // namespace

absl::Status RequireRegrouping(const ConvolutionDesc& desc, const VectorUnit& unit) {
  ABSL_RETURN_IF_ERROR(ChannelGather::Require({desc.src}, desc.src, unit));
  return ChannelGather::Require({desc.dst}, desc.dst, unit);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateRegrouped(const ConvolutionDesc& desc,
                                                           const DirectProblem& problem,
                                                           PrimitiveInfo info) {
  const int lanes = problem.unit.lanes();
  const bool has_sum = problem.post_ops.HasSum();
  ABSL_ASSIGN_OR_RETURN(Regrouping src, RegroupingOf(info.name, desc.src, problem, {.in = true}));
  ABSL_ASSIGN_OR_RETURN(Regrouping dst,
                        RegroupingOf(info.name, desc.dst, problem, {.in = has_sum, .out = true}));
  DirectProblem inner = problem;
  inner.geometry.batch = 1;
  inner.src = StridesOf(src.blocks, lanes, RoundUp(problem.geometry.ic, lanes));
  inner.dst = StridesOf(dst.blocks, lanes, RoundUp(problem.geometry.oc, lanes));
  ABSL_ASSIGN_OR_RETURN(DirectDriver driver, DirectDriver::Create(info.name, inner));
  info.code_bytes = driver.code_bytes() + src.code_bytes() + dst.code_bytes();
  info.scratchpad_bytes = src.scratch_bytes + dst.scratch_bytes;
  return std::make_unique<RegroupedConvolution>(std::move(info), std::move(src), std::move(dst),
                                                std::move(driver));
}

}  // namespace tilewire::convolution
