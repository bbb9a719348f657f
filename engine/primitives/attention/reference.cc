// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one row of dst after the other, in f32.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/attention/implementations.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reference_primitive.h"

namespace tilewire::attention {
namespace {

// Immutable.
class Formula {
 public:
  explicit Formula(const AttentionDesc& desc) : desc_(desc), dst_(desc.dst) {
    for (const MemoryDesc& src : desc.srcs) offsets_.emplace_back(src);
  }

  // `row` is [b,h,m,0].
  void ComputeRow(const ReferencePiece& piece, const Dims& row) const {
    const std::vector<float> shares = Shares(piece, row);
    const SeparableOffsets& of_values = offsets_[AttentionDesc::kValues];
    const int64_t values = of_values.Offset(OfGroup(row));
    float* dst = piece.Get<float>(kArgDst) + dst_.Offset(row);
    ForEachOperation(desc_.dst.dim(3), [&](int64_t e) {
      float sum = 0;
      for (size_t n = 0; n < shares.size(); ++n) {
        sum += shares[n] *
               Src(piece, AttentionDesc::kValues)[values + of_values.At(2, n) + of_values.At(3, e)];
      }
      dst[dst_.At(3, e)] = sum;
    });
  }

 private:
  static const float* Src(const ReferencePiece& piece, int i) {
    return piece.Get<const float>(kArgMultipleSrc + i);
  }

  // The first key or value that belongs to a query.
  Dims OfGroup(const Dims& row) const {
    const int64_t heads = desc_.srcs[AttentionDesc::kQueries].dim(1);
    return {row[0], row[1] / (heads / desc_.srcs[AttentionDesc::kKeys].dim(1)), 0, 0};
  }

  float Score(const ReferencePiece& piece, const Dims& index) const {
    const auto &of_queries = offsets_[AttentionDesc::kQueries],
               &of_keys = offsets_[AttentionDesc::kKeys];
    Dims row = index, key = OfGroup(index);
    row[3] = 0;
    key[2] = index[3];
    const int64_t queries = of_queries.Offset(row), keys = of_keys.Offset(key);
    float sum = 0;
    for (int64_t d = 0; d < desc_.srcs[AttentionDesc::kQueries].dim(3); ++d) {
      sum += Src(piece, AttentionDesc::kQueries)[queries + of_queries.At(3, d)] *
             Src(piece, AttentionDesc::kKeys)[keys + of_keys.At(3, d)];
    }
    float score = desc_.scale * sum;
    for (size_t i = AttentionDesc::kFirstMask; i < desc_.srcs.size(); ++i) {
      score += Src(piece,
                   static_cast<int>(i))[offsets_[i].Offset(MaskIndex(desc_.srcs[i].dims(), index))];
    }
    if (desc_.causal && index[3] > index[2]) return -std::numeric_limits<float>::infinity();
    return score;
  }

  std::vector<float> Shares(const ReferencePiece& piece, const Dims& row) const {
    std::vector<float> shares(desc_.srcs[AttentionDesc::kKeys].dim(2), 0);
    float highest = -std::numeric_limits<float>::infinity(), total = 0;
    Dims index = row;
    ForEachOperation(static_cast<int64_t>(shares.size()), [&](int64_t n) {
      index[3] = n;
      shares[n] = Score(piece, index);
      highest = std::max(highest, shares[n]);
    });
    for (float& share : shares) total += share = std::exp(share - highest);
    for (float& share : shares) share /= total;
    return shares;
  }

  const AttentionDesc desc_;
  const SeparableOffsets dst_;
  std::vector<SeparableOffsets> offsets_;  // of srcs
};

}  // namespace

Dims MaskIndex(const Dims& mask, const Dims& index) {
  Dims of_mask = index;
  of_mask[0] %= mask[0];
  for (size_t d = 1; d < mask.size(); ++d) of_mask[d] = mask[d] == 1 ? 0 : index[d];
  return of_mask;
}

absl::StatusOr<AttentionDesc> ResolveReference(const Request<AttentionDesc>& request) {
  const AttentionDesc& desc = request.desc;
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(request.attributes));
  for (const MemoryDesc& src : desc.srcs) {
    ABSL_RETURN_IF_ERROR(RequireF32(src, desc.dst));
  }
  return WithDst(desc, OrPlain(desc.dst));
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const Request<AttentionDesc>& request) {
  const AttentionDesc& desc = request.desc;
  const int64_t keys = desc.srcs[AttentionDesc::kKeys].dim(2);
  return CreateReferencePrimitive(
      InfoOf(request),
      {LinesAlong(desc.dst.dims(), 3),
       {keys, desc.srcs[AttentionDesc::kQueries].dim(3) + desc.dst.dim(3)}},
      [formula = Formula(desc)](const ReferencePiece& piece) {
        piece.ForEach([&](const Dims& row) { formula.ComputeRow(piece, row); });
      });
}

}  // namespace tilewire::attention
