// SPDX-License-Identifier: Apache-2.0
//
// Both tensors are seen as [outer, size, inner], where `size` is the dimension that is interpolated
// and everything nearer in memory is `inner`: a row of that is the weighted sum of as many rows as
// there are taps.
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/interpolate/implementations.h"
#include "engine/primitives/single_source.h"
#include "engine/threading/ranges.h"

namespace tilewire::interpolate {
namespace {

constexpr int64_t kElementsAtOnce = 16384;  // in one piece of work

// The stride of a dimension of one element has no meaning.
int64_t InnerElements(const MemoryDesc& src, const MemoryDesc& dst, int axis) {
  if (src.dim(axis) > 1) return src.stride(axis);
  return dst.dim(axis) > 1 ? dst.stride(axis) : dst.PaddedElementCount();
}

// Immutable.
class DenseRows final : public SingleSource<float> {
 public:
  DenseRows(PrimitiveInfo info, const InterpolateDesc& desc)
      : SingleSource(std::move(info)),
        desc_(desc),
        src_size_(desc.src.dim(desc.axis)),
        dst_size_(desc.dst.dim(desc.axis)),
        inner_(InnerElements(desc.src, desc.dst, desc.axis)),
        rows_(inner_ == 0 ? 0 : desc.dst.PaddedElementCount() / inner_) {}

 private:
  void RunOn(const float* src, float* dst, const threading::Team& team) const override {
    const int64_t at_once = threading::ItemsAtOnce(kElementsAtOnce, inner_);
    threading::ParallelForRanges(team, rows_, at_once, [&](int64_t begin, int64_t end) {
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
    for (int64_t t = i * desc_.taps; t < (i + 1) * desc_.taps; ++t) {
      const float* row = first + desc_.indices[t] * inner_;
      const float weight = desc_.weights[t];
      for (int64_t c = 0; c < kColumns; ++c) sums[c] += weight * row[c];
    }
    std::copy_n(sums, kColumns, dst);
  }

  const InterpolateDesc desc_;
  const int64_t src_size_, dst_size_, inner_, rows_;
};

// Nested and blocked alike: dst has the layout that src's has for its dims.
absl::Status RequireAlike(const MemoryDesc& src, const MemoryDesc& dst) {
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc like,
                        MemoryDesc::CreatePattern(dst.dims(), dst.data_type(), LayoutPattern(src)));
  if (like == dst) return absl::OkStatus();
  return Unimplemented("layouts differ: ", src.ToString(), " and ", dst.ToString());
}

}  // namespace

absl::StatusOr<InterpolateDesc> ResolveDenseRows(const Request<InterpolateDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(InterpolateDesc resolved, ResolveReference(request));
  for (const MemoryDesc* tensor : {&resolved.src, &resolved.dst}) {
    const bool takes =
        tensor->IsDense() && tensor->offset0() == 0 && tensor->BlockSize(request.desc.axis) == 1;
    if (!takes) return Unimplemented("a layout with gaps or in blocks along the axis");
  }
  ABSL_RETURN_IF_ERROR(RequireAlike(resolved.src, resolved.dst));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateDenseRows(
    const Request<InterpolateDesc>& request) {
  PrimitiveInfo info = InfoOf(request);
  info.code_bytes =
      static_cast<int64_t>(request.desc.weights.size() * (sizeof(int64_t) + sizeof(float)));
  return std::make_unique<DenseRows>(std::move(info), request.desc);
}

}  // namespace tilewire::interpolate
