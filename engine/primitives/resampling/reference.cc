// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one output after the other. The samples of an output
// are added in the order of depth, height, width.
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/separable_offsets.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/layout.h"
#include "engine/primitives/resampling/implementations.h"

namespace tilewire::resampling {
namespace {

// Immutable.
class Reference final : public Primitive {
 public:
  Reference(PrimitiveInfo info, const ResamplingDesc& desc)
      : Primitive(std::move(info)),
        nearest_(desc.algorithm == ResamplingAlgorithm::kNearest),
        dst_desc_(desc.dst),
        src_(desc.src),
        dst_(desc.dst) {
    for (int d = 2; d < desc.src.rank(); ++d) samples_.push_back(SamplesOf(desc, d));
  }

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const float* src = args.Get<const float>(kArgSrc);
    float* dst = args.Get<float>(kArgDst);
    Dims image = dst_desc_.dims();
    image[0] = 1;
    team.ParallelFor(dst_desc_.dim(0), [&](int64_t n) {
      ForEachIndex(image, [&](Dims index) {
        index[0] = n;
        dst[dst_.Offset(index)] = Value(src, index);
      });
    });
    ZeroPadding(dst_desc_, dst);
  }

  float Value(const float* src, const Dims& index) const {
    Dims at = index;
    if (nearest_) {
      for (size_t d = 0; d < samples_.size(); ++d) {
        at[d + 2] = samples_[d][index[d + 2]].index[0];
      }
      return src[src_.Offset(at)];
    }
    float sum = 0;
    ForEachIndex(Dims(samples_.size(), 2), [&](const Dims& side) {
      float weight = 1;
      for (size_t d = 0; d < samples_.size(); ++d) {
        const Sample& sample = samples_[d][index[d + 2]];
        at[d + 2] = sample.index[side[d]];
        weight *= sample.weight[side[d]];
      }
      sum += weight * src[src_.Offset(at)];
    });
    return sum;
  }

  const bool nearest_;
  const MemoryDesc dst_desc_;
  std::vector<std::vector<Sample>> samples_;  // by spatial dimension, by output
  const SeparableOffsets src_, dst_;
};

}  // namespace

absl::StatusOr<ResamplingDesc> ResolveReference(const ResamplingDesc& desc,
                                                const Attributes& attributes,
                                                const ImplementationFacts&) {
  ABSL_RETURN_IF_ERROR(RequireForward(desc.prop_kind));
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src, desc.dst));
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(attributes));
  ResamplingDesc resolved = desc;
  ABSL_ASSIGN_OR_RETURN(resolved.dst, OrLayoutOf(desc.dst, desc.src));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const ResamplingDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts) {
  return std::make_unique<Reference>(InfoOf(desc, attributes, facts), desc);
}

}  // namespace tilewire::resampling
