// SPDX-License-Identifier: Apache-2.0
//
// The executable specification of backward: any layouts, in double. Results are the rows of
// diff_src and, after them, the columns of the gradients of scale and shift.
#include <cmath>
#include <utility>

#include "engine/memory/layout.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/gradients.h"
#include "engine/primitives/layer_normalization/implementations.h"
#include "engine/primitives/reference_primitive.h"

namespace tilewire::layer_normalization {
namespace {

// Immutable.
class Gradient {
 public:
  explicit Gradient(const LayerNormalizationDesc& desc)
      : desc_(desc),
        axis_(desc.src.rank() - 1),
        size_(desc.src.dim(axis_)),
        rows_(RowsOf(desc)),
        src_(desc.src),
        diff_src_(desc.diff_src),
        diff_dst_(desc.diff_dst) {}

  void RunRow(const ReferencePiece& piece, int64_t row) const {
    const auto* scale = desc_.use_scale_shift ? piece.Get<const float>(kArgWeights) : nullptr;
    const Dims index = IndexOf(row);
    const double r = Inverse(piece, row);
    const double count = static_cast<double>(size_);
    // g and xh of an element.
    const auto terms = [&](int64_t c) {
      const double gradient = DiffDst(piece, index, c);
      return std::pair((scale == nullptr ? 1 : scale[c]) * gradient, Normal(piece, row, index, c));
    };
    double mean = 0, product = 0;
    if (!desc_.use_global_stats) {
      ForEachOperation(size_, [&](int64_t c) {
        const auto [g, normal] = terms(c);
        mean += g / count;
        product += g * normal / count;
      });
    }
    float* diff_src = piece.Get<float>(kArgDiffSrc) + diff_src_.Offset(index);
    ForEachOperation(size_, [&](int64_t c) {
      const auto [g, normal] = terms(c);
      diff_src[diff_src_.At(axis_, c)] = static_cast<float>(r * (g - mean - normal * product));
    });
  }

  void RunColumn(const ReferencePiece& piece, int64_t c) const {
    double diff_scale = 0, diff_shift = 0;
    ForEachOperation(rows_, [&](int64_t row) {
      const Dims index = IndexOf(row);
      const double gradient = DiffDst(piece, index, c);
      diff_scale += gradient * Normal(piece, row, index, c);
      diff_shift += gradient;
    });
    auto* diff_weights = piece.Get<float>(kArgDiffWeights);
    diff_weights[c] = static_cast<float>(diff_scale);
    diff_weights[size_ + c] = static_cast<float>(diff_shift);
  }

 private:
  // The first element of a row; rows are numbered in row-major order.
  Dims IndexOf(int64_t row) const {
    Dims index(axis_ + 1, 0);
    for (int d = axis_ - 1; d >= 0; --d) {
      index[d] = row % desc_.src.dim(d);
      row /= desc_.src.dim(d);
    }
    return index;
  }

  double Inverse(const ReferencePiece& piece, int64_t row) const {
    const double variance = piece.Get<const float>(kArgVariance)[row];
    return 1 / std::sqrt(variance + desc_.epsilon);
  }
  double Normal(const ReferencePiece& piece, int64_t row, const Dims& index, int64_t c) const {
    const double x = piece.Get<const float>(kArgSrc)[src_.Offset(index) + src_.At(axis_, c)];
    return (x - piece.Get<const float>(kArgMean)[row]) * Inverse(piece, row);
  }
  double DiffDst(const ReferencePiece& piece, const Dims& index, int64_t c) const {
    return piece.Get<const float>(kArgDiffDst)[diff_dst_.Offset(index) + diff_dst_.At(axis_, c)];
  }

  const LayerNormalizationDesc desc_;
  const int axis_;
  const int64_t size_, rows_;
  const SeparableOffsets src_, diff_src_, diff_dst_;
};

}  // namespace

absl::StatusOr<LayerNormalizationDesc> ResolveReferenceBackward(
    const Request<LayerNormalizationDesc>& request) {
  return ResolveF32Gradients(request, request.desc.src);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReferenceBackward(
    const Request<LayerNormalizationDesc>& request) {
  const LayerNormalizationDesc& desc = request.desc;
  const int64_t size = desc.src.dim(desc.src.rank() - 1);
  const bool sums = WritesParameterGradients(desc);
  // Without elements there are rows, but none that could be written.
  const int64_t rows = size == 0 ? 0 : RowsOf(desc);
  const auto compute = [gradient = Gradient(desc), rows](const ReferencePiece& piece) {
    piece.ForEach([&](const Dims& result) {
      if (result[0] < rows) return gradient.RunRow(piece, result[0]);
      gradient.RunColumn(piece, result[0] - rows);
    });
  };
  return CreateReferencePrimitive(BackwardInfoOf(request), {{rows + (sums ? size : 0)}, {3, size}},
                                  compute);
}

}  // namespace tilewire::layer_normalization
