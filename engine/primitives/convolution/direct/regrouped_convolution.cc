// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/direct/regrouped_convolution.h"

#include <utility>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/primitives/convolution/direct/direct_layouts.h"
#include "engine/primitives/convolution/direct/regrouping.h"
#include "engine/primitives/reordered.h"

namespace tilewire::convolution {
namespace {

using threading::Team;

// Immutable.
class RegroupedConvolution final : public Primitive {
 public:
  // Both are of one image.
  RegroupedConvolution(PrimitiveInfo info, Regrouping src, Regrouping dst, DirectDriver driver)
      : Primitive(std::move(info)),
        driver_(std::move(driver)),
        src_(std::move(src)),
        dst_(std::move(dst)) {}

 private:
  void Run(const ExecuteArgs& args, std::byte* scratchpad, const Team& team) const override {
    for (int64_t n = 0; n < Desc(kArgSrc).dim(0); ++n) {
      const std::byte* src = args.Get<const std::byte>(kArgSrc) + ImageBytes(kArgSrc, n);
      std::byte* const dst = args.Get<std::byte>(kArgDst) + ImageBytes(kArgDst, n);
      std::byte* const to = dst_.out ? scratchpad + src_.scratch_bytes : dst;
      if (src_.in) src_.in->Run({src}, scratchpad, team);
      if (dst_.in) dst_.in->Run({dst}, to, team);
      Convolve(args, src_.in ? scratchpad : src, to, team);
      if (dst_.out) dst_.out->Run({to}, dst, team);
    }
  }

  int64_t ImageBytes(int arg, int64_t images) const {
    return images * Desc(arg).stride(0) * SizeOf(Desc(arg).data_type());
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

absl::StatusOr<std::unique_ptr<Primitive>> CreateRegrouped(const ConvolutionDesc& desc,
                                                           const DirectProblem& problem,
                                                           PrimitiveInfo info) {
  const int lanes = problem.unit.lanes();
  const bool has_sum = problem.post_ops.HasSum();
  const int64_t groups = problem.geometry.groups;
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc src_image, FirstImages(desc.src, 1));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc dst_image, FirstImages(desc.dst, 1));
  ABSL_ASSIGN_OR_RETURN(Regrouping src,
                        Regrouping::Of(info.name, src_image, groups, problem.unit, {.in = true}));
  ABSL_ASSIGN_OR_RETURN(Regrouping dst, Regrouping::Of(info.name, dst_image, groups, problem.unit,
                                                       {.in = has_sum, .out = true}));
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
