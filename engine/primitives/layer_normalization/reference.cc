// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one row after the other, in double.
#include <cmath>

#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/layer_normalization/implementations.h"
#include "engine/primitives/reference_primitive.h"

namespace tilewire::layer_normalization {
namespace {

// Immutable.
class Formula {
 public:
  explicit Formula(const LayerNormalizationDesc& desc)
      : desc_(desc),
        axis_(desc.src.rank() - 1),
        size_(desc.src.dim(axis_)),
        src_(HasAddend(desc) ? desc.sum : desc.src),
        dst_(desc.dst) {}

  void RunRow(const ReferencePiece& piece, const Dims& index) const {
    const float* src = RowOfSource(piece, index);
    float* dst = piece.Get<float>(kArgDst) + dst_.Offset(index);
    double mean = 0, variance = 0;
    if (desc_.use_global_stats) {
      const int64_t row = RowOf(index);
      mean = piece.Get<const float>(kArgMean)[row];
      variance = piece.Get<const float>(kArgVariance)[row];
    } else {
      const double count = static_cast<double>(size_);
      ForEachOperation(size_, [&](int64_t c) { mean += src[src_.At(axis_, c)]; });
      mean /= count;
      ForEachOperation(size_, [&](int64_t c) {
        const double difference = src[src_.At(axis_, c)] - mean;
        variance += difference * difference;
      });
      variance /= count;
    }
    if (WritesStatistics(desc_)) {
      piece.Get<float>(kArgMean)[RowOf(index)] = static_cast<float>(mean);
      piece.Get<float>(kArgVariance)[RowOf(index)] = static_cast<float>(variance);
    }
    const auto* scale_shift = desc_.use_scale_shift ? piece.Get<const float>(kArgWeights) : nullptr;
    ForEachOperation(size_, [&](int64_t c) {
      const double normal = (src[src_.At(axis_, c)] - mean) / std::sqrt(variance + desc_.epsilon);
      dst[dst_.At(axis_, c)] = static_cast<float>(
          scale_shift == nullptr ? normal : scale_shift[c] * normal + scale_shift[size_ + c]);
    });
  }

 private:
  // The row of src, or of the sum with the addend, which is written first.
  const float* RowOfSource(const ReferencePiece& piece, Dims index) const {
    if (!HasAddend(desc_)) return piece.Get<const float>(kArgSrc) + src_.Offset(index);
    const auto *src = piece.Get<const float>(kArgSrc), *addend = piece.Get<const float>(kArgSrc1);
    auto* sum = piece.Get<float>(kArgMultipleDst);
    ForEachOperation(size_, [&](int64_t c) {
      index[axis_] = c;
      sum[desc_.sum.Offset(index)] =
          src[desc_.src.Offset(index)] + addend[desc_.addend.Offset(index)];
    });
    index[axis_] = 0;
    return sum + src_.Offset(index);
  }

  // Where a row's statistics are: rows in row-major order.
  int64_t RowOf(const Dims& index) const {
    int64_t row = 0;
    for (int d = 0; d < axis_; ++d) row = row * desc_.src.dim(d) + index[d];
    return row;
  }

  const LayerNormalizationDesc desc_;
  const int axis_;
  const int64_t size_;
  const SeparableOffsets src_, dst_;
};

}  // namespace

absl::StatusOr<LayerNormalizationDesc> ResolveReference(
    const Request<LayerNormalizationDesc>& request) {
  const LayerNormalizationDesc& desc = request.desc;
  ABSL_ASSIGN_OR_RETURN(LayerNormalizationDesc resolved, ResolveF32(desc, request.attributes));
  if (!HasAddend(desc)) return resolved;
  ABSL_RETURN_IF_ERROR(RequireF32(desc.addend, desc.sum));
  ABSL_ASSIGN_OR_RETURN(resolved.sum, OrLayoutOf(desc.sum, desc.src));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(
    const Request<LayerNormalizationDesc>& request) {
  const LayerNormalizationDesc& desc = request.desc;
  const auto compute = [formula = Formula(desc)](const ReferencePiece& piece) {
    piece.ForEach([&](const Dims& index) { formula.RunRow(piece, index); });
  };
  const int axis = desc.src.rank() - 1;
  return CreateReferencePrimitive(
      InfoOf(request), {LinesAlong(desc.src.dims(), axis), {3, desc.src.dim(axis)}}, compute);
}

}  // namespace tilewire::layer_normalization
