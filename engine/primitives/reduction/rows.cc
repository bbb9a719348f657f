// SPDX-License-Identifier: Apache-2.0
//
// Any layout, some rows of dst per piece of work: each element of dst visits its elements of src in
// logical order, as the reference does, with the same bits.
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/kernels/moves/tensor_rows.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/separable_offsets.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reduction/combination.h"
#include "engine/primitives/reduction/implementations.h"

namespace tilewire::reduction {
namespace {

// Immutable.
class Rows final : public Primitive {
 public:
  Rows(PrimitiveInfo info, const ReductionDesc& desc)
      : Primitive(std::move(info)),
        desc_(desc),
        rows_(desc.dst),
        from_(desc.src),
        to_(desc.dst),
        window_(desc.src.dims()) {
    for (int d = 0; d < desc.dst.rank(); ++d) {
      if (desc.dst.dim(d) == desc.src.dim(d)) window_[d] = 1;
    }
    last_ = static_cast<int>(window_.size()) - 1;
    for (int d = 0; d < desc.src.rank(); ++d) {
      if (window_[d] > 1) last_ = d;
    }
    last_size_ = window_[last_];
    window_[last_] = 1;
  }

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const float* src = args.Get<const float>(kArgSrc);
    float* dst = args.Get<float>(kArgDst);
    rows_.ForEach(team, [&](const Dims& row) {
      Dims index = row;
      for (int64_t i = 0; i < desc_.dst.dim(rows_.inner()); ++i) {
        index[rows_.inner()] = i;
        dst[to_.Offset(index)] = ReduceAt(src + from_.Offset(index));
      }
    });
    if (desc_.dst.HasPadding()) ZeroPadding(desc_.dst, dst);
  }

  // Over the window that begins there.
  float ReduceAt(const float* src) const {
    double result = NeutralElement(desc_.algorithm);
    ForEachIndex(window_, [&](const Dims& index) {
      const float* at = src;
      for (size_t d = 0; d < index.size(); ++d) at += from_.At(static_cast<int>(d), index[d]);
      for (int64_t i = 0; i < last_size_; ++i)
        result = Combine(desc_, result, at[from_.At(last_, i)]);
    });
    return static_cast<float>(FinishCombination(desc_, result));
  }

  const ReductionDesc desc_;
  const TensorRows rows_;
  const SeparableOffsets from_, to_;
  Dims window_;   // sizes that are reduced, 1 elsewhere and along the last of them
  int last_ = 0;  // the innermost dimension that is reduced
  int64_t last_size_ = 1;
};

}  // namespace

absl::StatusOr<ReductionDesc> ResolveRows(const Request<ReductionDesc>& request) {
  ABSL_RETURN_IF_ERROR(RequireOwnMemory(request.desc.src));
  return ResolveReference(request);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateRows(const Request<ReductionDesc>& request) {
  return std::make_unique<Rows>(InfoOf(request), request.desc);
}

}  // namespace tilewire::reduction
