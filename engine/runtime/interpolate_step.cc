// SPDX-License-Identifier: Apache-2.0
//
// Both tensors are seen as [outer, size, inner], where `size` is the dimension that is interpolated
// and everything nearer in memory is `inner`: a row of that is the weighted sum of as many rows as
// there are taps.
#include <algorithm>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/runtime/elementwise_step.h"
#include "engine/runtime/step_rows.h"

namespace tilewire::runtime {
namespace {

constexpr int64_t kInterpolatedAtOnce = 16384;  // elements in one piece of work

// The stride of a dimension of one element says nothing.
int64_t InnerElements(const MemoryDesc& src, const MemoryDesc& dst, int axis) {
  if (src.dim(axis) > 1) return src.stride(axis);
  return dst.dim(axis) > 1 ? dst.stride(axis) : dst.PaddedElementCount();
}

// Immutable.
class InterpolateStep final : public Primitive {
 public:
  InterpolateStep(PrimitiveInfo info, const graph::Interpolate& interpolate, const MemoryDesc& src,
                  const MemoryDesc& dst)
      : Primitive(std::move(info)),
        interpolate_(interpolate),
        src_size_(src.dim(interpolate.axis)),
        dst_size_(dst.dim(interpolate.axis)),
        inner_(InnerElements(src, dst, interpolate.axis)),
        rows_(inner_ == 0 ? 0 : dst.PaddedElementCount() / inner_) {}

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const float* src = args.Get<const float>(kArgSrc);
    float* dst = args.Get<float>(kArgDst);
    const int64_t at_once =
        std::max<int64_t>(1, kInterpolatedAtOnce / std::max<int64_t>(1, inner_));
    team.ParallelFor(DivUp(rows_, at_once), [&](int64_t task) {
      const int64_t begin = task * at_once, end = std::min(rows_, begin + at_once);
      const float* first = src + begin / dst_size_ * src_size_ * inner_;
      int64_t i = begin % dst_size_;
      for (int64_t row = begin; row < end; ++row) {
        SumRows(first, i, dst + row * inner_);
        if (++i < dst_size_) continue;
        i = 0;
        first += src_size_ * inner_;
      }
    });
  }

  // The sum for index `i` of dst, of the rows that begin at `first`. As many columns at a time as
  // any compiler keeps in one register.
  void SumRows(const float* first, int64_t i, float* dst) const {
    constexpr int64_t kColumns = 4;
    int64_t column = 0;
    for (; column + kColumns <= inner_; column += kColumns)
      SumColumns<kColumns>(first + column, i, dst + column);
    for (; column < inner_; ++column) SumColumns<1>(first + column, i, dst + column);
  }

  template <int64_t kColumns>
  void SumColumns(const float* first, int64_t i, float* dst) const {
    float sums[kColumns] = {};
    for (int64_t t = i * interpolate_.taps; t < (i + 1) * interpolate_.taps; ++t) {
      const float* row = first + interpolate_.indices[t] * inner_;
      const float weight = interpolate_.weights[t];
      for (int64_t c = 0; c < kColumns; ++c) sums[c] += weight * row[c];
    }
    std::copy_n(sums, kColumns, dst);
  }

  const graph::Interpolate interpolate_;
  const int64_t src_size_, dst_size_, inner_, rows_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Primitive>> CreateInterpolateStep(
    const graph::Interpolate& interpolate, const MemoryDesc& src, const MemoryDesc& dst) {
  ABSL_RETURN_IF_ERROR(CheckStep(src));
  ABSL_RETURN_IF_ERROR(CheckStep(dst));
  for (const MemoryDesc* desc : {&src, &dst}) {
    if (!desc->IsDense() || desc->offset0() != 0 || desc->BlockSize(interpolate.axis) != 1)
      return absl::UnimplementedError("interpolation of a layout with gaps or along blocks");
  }
  return std::make_shared<InterpolateStep>(
      StepInfo("runtime/interpolate", {{kArgSrc, src}, {kArgDst, dst}}), interpolate, src, dst);
}

}  // namespace tilewire::runtime
