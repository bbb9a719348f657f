// SPDX-License-Identifier: Apache-2.0
//
// All tensors in one dense layout: a loop over physical elements, which memory bounds. The padded
// tail is zeroed after: 0 times a negative scale is -0, times an infinite one NaN.
#include <algorithm>

#include "engine/base/status_macros.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/sum/implementations.h"

namespace tilewire::sum {
namespace {

constexpr int64_t kChunk = 16 * 1024;  // elements: a piece of work for one thread

// Immutable.
class DenseF32 final : public Primitive {
 public:
  DenseF32(PrimitiveInfo info, const SumDesc& desc)
      : Primitive(std::move(info)),
        scales_(desc.scales),
        dst_(desc.dst),
        offset0_(desc.dst.offset0()),
        count_(desc.dst.PaddedElementCount()) {}

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    team.ParallelFor(DivUp(count_, kChunk), [&](int64_t chunk) {
      const int64_t begin = chunk * kChunk;
      RunRange(args, begin, std::min(count_, begin + kChunk));
    });
    if (dst_.HasPadding()) ZeroPadding(dst_, args.Find(kArgDst));
  }

  // The order of the sources is the order of addition; dst may be source 0, not a later one.
  void RunRange(const ExecuteArgs& args, int64_t begin, int64_t end) const {
    float* dst = args.Get<float>(kArgDst) + offset0_;
    const float* first = args.Get<const float>(kArgMultipleSrc) + offset0_;
    for (int64_t i = begin; i < end; ++i) dst[i] = scales_[0] * first[i];
    for (size_t s = 1; s < scales_.size(); ++s) {
      const float* src = args.Get<const float>(kArgMultipleSrc + static_cast<int>(s)) + offset0_;
      const float scale = scales_[s];
      for (int64_t i = begin; i < end; ++i) dst[i] += scale * src[i];
    }
  }

  const std::vector<float> scales_;
  const MemoryDesc dst_;
  const int64_t offset0_;
  const int64_t count_;
};

}  // namespace

absl::StatusOr<SumDesc> ResolveDenseF32(const SumDesc& desc, const Attributes& attributes) {
  ABSL_ASSIGN_OR_RETURN(SumDesc resolved, ResolveReference(desc, attributes));
  if (!resolved.dst.IsDense()) return absl::UnimplementedError("dst is not dense");
  for (const MemoryDesc& src : resolved.srcs) {
    if (src != resolved.dst) return absl::UnimplementedError("layouts differ");
  }
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateDenseF32(const SumDesc& desc,
                                                          const Attributes& attributes,
                                                          absl::string_view name) {
  return std::make_unique<DenseF32>(
      BasicInfo(name, PrimitiveKind::kSum, ArgsOf(desc.srcs, desc.dst), attributes), desc);
}

}  // namespace tilewire::sum
