// SPDX-License-Identifier: Apache-2.0
//
// The gradient of what is gathered from, everything row-major: a piece of work is some rows of it,
// which it sets to zero, and to which it adds the slices whose indices name them, in the order of
// the indices. Sums are f32.
#include <algorithm>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/gather/implementations.h"
#include "engine/primitives/gather/indices.h"
#include "engine/threading/ranges.h"
#include "engine/threading/stop.h"

namespace tilewire::gather {
namespace {

// Immutable.
class SliceSum final : public Primitive {
 public:
  SliceSum(PrimitiveInfo info, const GatherDesc& desc)
      : Primitive(std::move(info)),
        desc_(desc),
        size_(desc.src.dim(desc.axis)),
        indices_(desc.indices.ElementCount()) {
    for (int d = 0; d < desc.src.rank(); ++d) {
      if (d < desc.axis) outer_ *= desc.src.dim(d);
      if (d > desc.axis) slice_ *= desc.src.dim(d);
    }
  }

 private:
  absl::Status CheckElements(const ExecuteArgs& args, const threading::Team& team) const override {
    return CheckIndices(desc_, args.Find(kArgSrc1), team);
  }

  // Every piece looks through the indices: there are a few pieces, unless slices are long.
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    constexpr int64_t kFloatsAtOnce = 16 * 1024, kMostPieces = 64;
    const auto* const diff_dst = args.Get<const float>(kArgDiffDst);
    const void* const indices = args.Find(kArgSrc1);
    auto* const diff_src = args.Get<float>(kArgDiffWeights);
    const int64_t rows = slice_ == 0 ? 0 : outer_ * size_;
    const int64_t at_once =
        std::max(threading::ItemsAtOnce(kFloatsAtOnce, slice_), DivUp(rows, kMostPieces));
    threading::ParallelForRanges(team, rows, at_once, [&](int64_t first, int64_t end) {
      std::fill(diff_src + first * slice_, diff_src + end * slice_, 0.0f);
      while (first < end && !threading::Stopped()) {
        const int64_t outer = first / size_, next = std::min(end, (outer + 1) * size_);
        AddSlices(indices, diff_dst + outer * indices_ * slice_, diff_src, first, next);
        first = next;
      }
    });
  }

  // To the rows [first, end), which stand before one index of the dimensions before the axis.
  void AddSlices(const void* indices, const float* diff_dst, float* diff_src, int64_t first,
                 int64_t end) const {
    const int64_t before = first / size_ * size_;
    for (int64_t i = 0; i < indices_; ++i) {
      const int64_t row = before + PlaceOfIndex(desc_.indices.data_type(), indices, i, size_);
      if (row < first || row >= end) continue;
      AddSlice(diff_dst + i * slice_, diff_src + row * slice_);
    }
  }

  // The compiler turns lines of a known length into vectors: all are read before one is written.
  void AddSlice(const float* from, float* to) const {
    constexpr int64_t kLine = 16;
    int64_t i = 0;
    for (; i + kLine <= slice_; i += kLine) {
      float sums[kLine];
      for (int64_t j = 0; j < kLine; ++j) sums[j] = to[i + j] + from[i + j];
      for (int64_t j = 0; j < kLine; ++j) to[i + j] = sums[j];
    }
    for (; i < slice_; ++i) to[i] += from[i];
  }

  const GatherDesc desc_;
  const int64_t size_, indices_;   // elements along the axis, and how many were taken
  int64_t outer_ = 1, slice_ = 1;  // elements of what stands before the axis, and after it
};

}  // namespace

absl::StatusOr<GatherDesc> ResolveSliceSum(const Request<GatherDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(GatherDesc resolved, ResolveReferenceBackward(request));
  for (const MemoryDesc* tensor : {&resolved.src, &resolved.indices, &resolved.dst})
    ABSL_RETURN_IF_ERROR(RequireRowMajor(*tensor));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateSliceSum(const Request<GatherDesc>& request) {
  return std::make_unique<SliceSum>(BackwardInfoOf(request), request.desc);
}

}  // namespace tilewire::gather
