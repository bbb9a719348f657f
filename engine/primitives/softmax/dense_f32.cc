// SPDX-License-Identifier: Apache-2.0
//
// Dense tensors whose axis is the innermost dimension in memory: rows are contiguous and
// independent; each thread takes groups of rows.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/softmax/implementations.h"

namespace tilewire::softmax {
namespace {

// Immutable.
class DenseF32 final : public Primitive {
 public:
  DenseF32(PrimitiveInfo info, const SoftmaxDesc& desc)
      : Primitive(std::move(info)),
        offset0_(desc.dst.offset0()),
        size_(desc.dst.dim(desc.axis)),
        rows_(size_ == 0 ? 0 : desc.dst.ElementCount() / size_) {}

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const float* src = args.Get<const float>(kArgSrc) + offset0_;
    float* dst = args.Get<float>(kArgDst) + offset0_;
    const int64_t rows_a_task = std::max<int64_t>(1, 1024 / std::max<int64_t>(1, size_));
    team.ParallelFor(DivUp(rows_, rows_a_task), [&](int64_t task) {
      const int64_t end = std::min(rows_, (task + 1) * rows_a_task);
      for (int64_t row = task * rows_a_task; row < end; ++row) {
        RunRow(src + row * size_, dst + row * size_);
      }
    });
  }

  void RunRow(const float* src, float* dst) const {
    float highest = -std::numeric_limits<float>::infinity();
    for (int64_t i = 0; i < size_; ++i) highest = std::max(highest, src[i]);
    float total = 0;
    for (int64_t i = 0; i < size_; ++i) {
      dst[i] = std::exp(src[i] - highest);
      total += dst[i];
    }
    const float scale = 1 / total;
    for (int64_t i = 0; i < size_; ++i) dst[i] *= scale;
  }

  const int64_t offset0_, size_, rows_;
};

}  // namespace

absl::StatusOr<SoftmaxDesc> ResolveDenseF32(const Request<SoftmaxDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(SoftmaxDesc resolved, ResolveReference(request));
  const MemoryDesc& md = resolved.src;
  if (resolved.dst != md) return absl::UnimplementedError("layouts of src and dst differ");
  const bool is_row = md.dim(resolved.axis) == 1 || md.stride(resolved.axis) == 1;
  if (md.IsPlain() && md.IsDense() && is_row) return resolved;
  return absl::UnimplementedError("not dense with the axis innermost");
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateDenseF32(const Request<SoftmaxDesc>& request) {
  return std::make_unique<DenseF32>(InfoOf(request), request.desc);
}

}  // namespace tilewire::softmax
