// SPDX-License-Identifier: Apache-2.0
//
// The executable specification, any layout. One window after the other; floats are added in f32,
// integers in s32.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "engine/kernels/element_conversion.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/pooling/implementations.h"

namespace tilewire::pooling {
namespace {

// Immutable. T is the type of the elements.
template <typename T>
class Reference final : public Primitive {
 public:
  Reference(PrimitiveInfo info, const PoolingDesc& desc)
      : Primitive(std::move(info)), desc_(desc) {}

 private:
  static constexpr bool kIsFloat = std::is_same_v<T, float>;

  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const T* src = args.Get<const T>(kArgSrc);
    void* dst = args.Get<void>(kArgDst);
    Dims image = desc_.dst.dims();
    image[0] = 1;
    team.ParallelFor(desc_.dst.dim(0), [&](int64_t n) {
      ForEachIndex(image, [&](Dims index) {
        index[0] = n;
        Window(src, index, dst, desc_.dst.Offset(index));
      });
    });
    ZeroPadding(desc_.dst, dst);
  }

  // Pools the window of dst element `index`; its elements in row-major order.
  void Window(const T* src, const Dims& index, void* dst, int64_t dst_offset) const {
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
    using Limits = std::numeric_limits<T>;
    T highest = kIsFloat ? -Limits::infinity() : Limits::lowest();
    std::conditional_t<kIsFloat, float, uint32_t> sum = 0;  // s32 that may wrap around
    int64_t count = 0;
    Dims at = index;
    ForEachIndex(taps, [&](const Dims& tap) {
      for (int d = 0; d < spatial; ++d) at[d + 2] = begin[d] + tap[d];
      const T value = src[desc_.src.Offset(at)];
      // A NaN, once seen, stays: it compares false.
      highest = value <= highest || highest != highest ? highest : value;
      sum += value;
      ++count;
    });
    if (desc_.algorithm == PoolingAlgorithm::kMax) {
      static_cast<T*>(dst)[dst_offset] = highest;
      return;
    }
    const bool include = desc_.algorithm == PoolingAlgorithm::kAvgIncludePadding;
    const auto total = static_cast<std::conditional_t<kIsFloat, float, int32_t>>(sum);
    StoreElement(desc_.dst.data_type(),
                 static_cast<float>(total) / static_cast<float>(include ? window : count), dst,
                 dst_offset);
  }

  const PoolingDesc desc_;
};

}  // namespace

absl::StatusOr<PoolingDesc> ResolveReference(const PoolingDesc& desc, const Attributes& attributes,
                                             const ImplementationFacts&) {
  return ResolveDefaults(desc, attributes);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const PoolingDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts) {
  PrimitiveInfo info =
      BasicInfo(facts, PrimitiveKind::kPooling, ArgsOf(desc.src, desc.dst), attributes);
  switch (desc.src.data_type()) {
    case DataType::kU8:
      return std::make_unique<Reference<uint8_t>>(std::move(info), desc);
    case DataType::kS8:
      return std::make_unique<Reference<int8_t>>(std::move(info), desc);
    case DataType::kS32:
      return std::make_unique<Reference<int32_t>>(std::move(info), desc);
    default:
      return std::make_unique<Reference<float>>(std::move(info), desc);
  }
}

}  // namespace tilewire::pooling
