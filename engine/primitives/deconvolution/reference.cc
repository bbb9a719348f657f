// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: deconvolution.h's formula as plain loops, f32, any layout. One
// output after the other; its products are added in the order of input channel, depth, height,
// width.
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/kernels/scalar_epilogue.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/separable_offsets.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/deconvolution/geometry.h"
#include "engine/primitives/deconvolution/implementations.h"
#include "engine/primitives/layout.h"

namespace tilewire::deconvolution {
namespace {

// Immutable.
class Reference final : public Primitive {
 public:
  Reference(PrimitiveInfo info, const DeconvolutionDesc& desc, const PostOps& post_ops)
      : Primitive(std::move(info)),
        geometry_(GeometryOf(desc)),
        desc_(desc),
        post_ops_(post_ops),
        src_(desc.src),
        weights_(desc.weights),
        bias_(desc.bias),
        dst_(desc.dst) {}

 private:
  // What one output reads along each spatial dimension. A table of all outputs would be many times
  // as large as the tensors.
  class Sources {
   public:
    explicit Sources(const Reference& reference)
        : axes_(&reference.geometry_.axes[5 - reference.desc_.src.rank()]),
          at_(reference.desc_.src.rank() - 2, -1),
          sources_(at_.size()) {}

    void MoveTo(const Dims& index) {
      for (size_t i = 0; i < at_.size(); ++i) {
        if (at_[i] == index[i + 2]) continue;
        at_[i] = index[i + 2];
        sources_[i] = axes_[i].SourcesOf(at_[i]);
      }
    }
    const std::vector<std::vector<Source>>& operator*() const { return sources_; }

   private:
    const Axis* const axes_;
    Dims at_;
    std::vector<std::vector<Source>> sources_;
  };

  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const int64_t channels = desc_.dst.dim(1);
    Dims plane = desc_.dst.dims();
    plane[0] = plane[1] = 1;
    team.ParallelFor(geometry_.batch * channels, [&](int64_t task) {
      Sources sources(*this);
      ForEachIndex(plane, [&](Dims index) {
        index[0] = task / channels;
        index[1] = task % channels;
        sources.MoveTo(index);
        float value = Sum(args, index, *sources);
        if (!desc_.bias.IsZero())
          value += args.Get<const float>(kArgBias)[bias_.Offset({index[1]})];
        float& result = args.Get<float>(kArgDst)[dst_.Offset(index)];
        result = ApplyPostOps(post_ops_, value, result);
      });
    });
    ZeroPadding(desc_.dst, args.Find(kArgDst));
  }

  float Sum(const ExecuteArgs& args, const Dims& index,
            const std::vector<std::vector<Source>>& sources) const {
    const int group_dims = geometry_.grouped_weights ? 1 : 0;
    const int64_t group = index[1] / geometry_.oc;
    Dims taps, from = index, at(desc_.weights.rank(), 0);
    for (const std::vector<Source>& line : sources) taps.push_back(line.size());
    if (group_dims == 1) at[0] = group;
    at[group_dims] = index[1] % geometry_.oc;
    float sum = 0;
    for (int64_t ic = 0; ic < geometry_.ic; ++ic) {
      from[1] = group * geometry_.ic + ic;
      at[group_dims + 1] = ic;
      ForEachIndex(taps, [&](const Dims& tap) {
        for (size_t i = 0; i < sources.size(); ++i) {
          const Source& source = sources[i][tap[i]];
          from[i + 2] = source.position;
          at[group_dims + 2 + i] = source.tap;
        }
        sum += args.Get<const float>(kArgSrc)[src_.Offset(from)] *
               args.Get<const float>(kArgWeights)[weights_.Offset(at)];
      });
    }
    return sum;
  }

  const Geometry geometry_;
  const DeconvolutionDesc desc_;
  const PostOps post_ops_;
  const SeparableOffsets src_, weights_, bias_, dst_;
};

}  // namespace

absl::StatusOr<DeconvolutionDesc> ResolveReference(const DeconvolutionDesc& desc,
                                                   const Attributes& attributes,
                                                   const ImplementationFacts&) {
  ABSL_RETURN_IF_ERROR(RequireForwardF32(desc, attributes));
  DeconvolutionDesc resolved = desc;
  for (MemoryDesc* tensor : {&resolved.src, &resolved.weights, &resolved.bias, &resolved.dst}) {
    ABSL_ASSIGN_OR_RETURN(*tensor, OrPlain(*tensor));
  }
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const DeconvolutionDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts) {
  return std::make_unique<Reference>(InfoOf(desc, attributes, facts), desc, attributes.post_ops);
}

}  // namespace tilewire::deconvolution
