// SPDX-License-Identifier: Apache-2.0
//
// The executable specification. One window after the other, f32.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/memory/index_walk.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/pooling/implementations.h"

namespace tilewire::pooling {
namespace {

// Immutable.
class Reference final : public Primitive {
 public:
  Reference(PrimitiveInfo info, const PoolingDesc& desc)
      : Primitive(std::move(info)), desc_(desc) {}

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const float* src = args.Get<const float>(kArgSrc);
    float* dst = args.Get<float>(kArgDst);
    Dims image = desc_.dst.dims();
    image[0] = 1;
    team.ParallelFor(desc_.dst.dim(0), [&](int64_t n) {
      ForEachIndex(image, [&](Dims index) {
        index[0] = n;
        dst[desc_.dst.Offset(index)] = Window(src, index);
      });
    });
    ZeroPadding(desc_.dst, dst);
  }

  // The pooled value of the window of dst element `index`; its elements in row-major order.
  float Window(const float* src, const Dims& index) const {
    const int spatial = static_cast<int>(desc_.kernel.size());
    Dims taps, begin;
    int64_t window = 1;
    for (int d = 0; d < spatial; ++d) {
      const int64_t start = index[d + 2] * desc_.strides[d] - desc_.padding_left[d];
      const int64_t end = std::min(start + desc_.kernel[d], desc_.src.dim(d + 2));
      begin.push_back(std::max<int64_t>(start, 0));
      taps.push_back(end - begin.back());
      window *= desc_.kernel[d];
    }
    const bool is_max = desc_.algorithm == PoolingAlgorithm::kMax;
    float result = is_max ? -std::numeric_limits<float>::infinity() : 0;
    int64_t count = 0;
    Dims at = index;
    ForEachIndex(taps, [&](const Dims& tap) {
      for (int d = 0; d < spatial; ++d) at[d + 2] = begin[d] + tap[d];
      const float value = src[desc_.src.Offset(at)];
      // A NaN, once seen, stays: it compares false.
      result = !is_max ? result + value : value <= result || std::isnan(result) ? result : value;
      ++count;
    });
    if (is_max) return result;
    return result / static_cast<float>(
                        desc_.algorithm == PoolingAlgorithm::kAvgIncludePadding ? window : count);
  }

  const PoolingDesc desc_;
};

}  // namespace

absl::StatusOr<PoolingDesc> ResolveReference(const PoolingDesc& desc,
                                             const Attributes& attributes) {
  return ResolveDefaults(desc, attributes);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const PoolingDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name) {
  PrimitiveInfo info =
      BasicInfo(name, PrimitiveKind::kPooling, ArgsOf(desc.src, desc.dst), attributes);
  return std::make_unique<Reference>(std::move(info), desc);
}

}  // namespace tilewire::pooling
