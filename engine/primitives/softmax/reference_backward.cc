// SPDX-License-Identifier: Apache-2.0
//
// The executable specification of backward: any layouts, one row of the axis after the other, in
// double.
#include <cmath>

#include "engine/memory/layout.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/gradients.h"
#include "engine/primitives/reference_primitive.h"
#include "engine/primitives/softmax/implementations.h"

namespace tilewire::softmax {
namespace {

// Immutable.
class Gradient {
 public:
  explicit Gradient(const SoftmaxDesc& desc)
      : axis_(desc.axis),
        size_(desc.dst.dim(desc.axis)),
        is_log_(desc.algorithm == SoftmaxAlgorithm::kLogSoftmax),
        dst_(desc.dst),
        diff_src_(desc.diff_src),
        diff_dst_(desc.diff_dst) {}

  void RunRow(const ReferencePiece& piece, const Dims& row) const {
    const float* y = piece.Get<const float>(kArgDst) + dst_.Offset(row);
    const float* dy = piece.Get<const float>(kArgDiffDst) + diff_dst_.Offset(row);
    float* dx = piece.Get<float>(kArgDiffSrc) + diff_src_.Offset(row);
    double sum = 0;
    ForEachOperation(size_, [&](int64_t i) {
      const double gradient = dy[diff_dst_.At(axis_, i)];
      sum += is_log_ ? gradient : gradient * y[dst_.At(axis_, i)];
    });
    ForEachOperation(size_, [&](int64_t i) {
      const double value = y[dst_.At(axis_, i)], gradient = dy[diff_dst_.At(axis_, i)];
      dx[diff_src_.At(axis_, i)] =
          static_cast<float>(is_log_ ? gradient - std::exp(value) * sum : value * (gradient - sum));
    });
  }

 private:
  const int axis_;
  const int64_t size_;
  const bool is_log_;
  const SeparableOffsets dst_, diff_src_, diff_dst_;
};

}  // namespace

PrimitiveInfo BackwardInfoOf(const Request<SoftmaxDesc>& request) {
  const SoftmaxDesc& desc = request.desc;
  return BasicInfo(
      request, {{kArgDst, desc.dst}, {kArgDiffDst, desc.diff_dst}, {kArgDiffSrc, desc.diff_src}});
}

absl::StatusOr<SoftmaxDesc> ResolveReferenceBackward(const Request<SoftmaxDesc>& request) {
  return ResolveF32Gradients(request, request.desc.dst);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReferenceBackward(
    const Request<SoftmaxDesc>& request) {
  const SoftmaxDesc& desc = request.desc;
  const auto compute = [gradient = Gradient(desc)](const ReferencePiece& piece) {
    piece.ForEach([&](const Dims& row) { gradient.RunRow(piece, row); });
  };
  return CreateReferencePrimitive(
      BackwardInfoOf(request),
      {LinesAlong(desc.dst.dims(), desc.axis), {2, desc.dst.dim(desc.axis)}}, compute);
}

}  // namespace tilewire::softmax
