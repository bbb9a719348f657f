// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one element after the other. Squares are added in f32
// in the order of their indices; the power is taken in double.
#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/separable_offsets.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/lrn/implementations.h"

namespace tilewire::lrn {
namespace {

// Immutable.
class Reference final : public Primitive {
 public:
  Reference(PrimitiveInfo info, const LrnDesc& desc)
      : Primitive(std::move(info)),
        desc_(desc),
        first_(desc.algorithm == LrnAlgorithm::kAcrossChannels ? 1 : 2),
        last_(desc.algorithm == LrnAlgorithm::kAcrossChannels ? 2 : desc.src.rank()),
        src_(desc.src),
        dst_(desc.dst) {}

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const float* src = args.Get<const float>(kArgSrc);
    float* dst = args.Get<float>(kArgDst);
    Dims image = desc_.dst.dims();
    image[0] = 1;
    team.ParallelFor(desc_.dst.dim(0), [&](int64_t n) {
      ForEachIndex(image, [&](Dims index) {
        index[0] = n;
        const double base = desc_.k + ScaleOf(desc_) * static_cast<double>(Sum(src, index));
        dst[dst_.Offset(index)] =
            static_cast<float>(src[src_.Offset(index)] * std::pow(base, -desc_.beta));
      });
    });
    ZeroPadding(desc_.dst, dst);
  }

  // Of the squares of `index`'s neighbours.
  float Sum(const float* src, const Dims& index) const {
    Dims count(index.size(), 1), begin = index;
    for (int d = first_; d < last_; ++d) {
      begin[d] = std::max<int64_t>(index[d] - ReachOf(desc_), 0);
      count[d] = std::min(index[d] + ReachOf(desc_) + 1, desc_.src.dim(d)) - begin[d];
    }
    float sum = 0;
    ForEachIndex(count, [&](Dims at) {
      for (size_t d = 0; d < at.size(); ++d) at[d] += begin[d];
      const float value = src[src_.Offset(at)];
      sum += value * value;
    });
    return sum;
  }

  const LrnDesc desc_;
  const int first_, last_;  // the dimensions along which neighbours lie
  const SeparableOffsets src_, dst_;
};

}  // namespace

absl::StatusOr<LrnDesc> ResolveReference(const LrnDesc& desc, const Attributes& attributes,
                                         const ImplementationFacts&) {
  return ResolveDefaults(desc, attributes);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const LrnDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts) {
  return std::make_unique<Reference>(InfoOf(desc, attributes, facts), desc);
}

}  // namespace tilewire::lrn
