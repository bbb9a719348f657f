// SPDX-License-Identifier: Apache-2.0
//
// The executable specification of backward: any layouts. A result is an element of dst with all the
// elements of src that fall on it; in double.
#include <cmath>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/gradients.h"
#include "engine/primitives/reduction/combination.h"
#include "engine/primitives/reduction/implementations.h"
#include "engine/primitives/reference_primitive.h"

namespace tilewire::reduction {
namespace {

// The elements that fall on one of dst, combined.
struct Combined {
  double value;                  // as forward has it before it is finished
  int64_t takers = 0;            // elements that are the extremum
  int64_t zeros = 0;             // of a product,
  double product_of_others = 1;  // and the product of the others
};

bool IsTaken(double x, double extremum) {
  return x == extremum || (std::isnan(x) && std::isnan(extremum));
}

// The derivative of the result of a norm, from its sum of powers, by x.
double NormSlope(const ReductionDesc& desc, double sum, double x) {
  if (!AddsEps(desc.algorithm) && sum < desc.eps) return 0;
  const double p = desc.p;
  const double slope = x == 0 ? 0 : std::copysign(std::pow(std::abs(x), p - 1), x);
  if (!TakesRoot(desc.algorithm)) return p * slope;
  const double base = AddsEps(desc.algorithm) ? sum + desc.eps : sum;
  return base == 0 ? 0 : slope * std::pow(base, 1 / p - 1);
}

double SlopeOf(const ReductionDesc& desc, const Combined& combined, double x) {
  switch (desc.algorithm) {
    case ReductionAlgorithm::kSum:
      return 1;
    case ReductionAlgorithm::kMean:
      return 1 / static_cast<double>(ReducedCount(desc));
    case ReductionAlgorithm::kMax:
    case ReductionAlgorithm::kMin:
      return IsTaken(x, combined.value) ? 1 / static_cast<double>(combined.takers) : 0;
    case ReductionAlgorithm::kMul:
      if (combined.zeros == 0) return combined.product_of_others / x;
      return combined.zeros == 1 && x == 0 ? combined.product_of_others : 0;
    default:
      return NormSlope(desc, combined.value, x);
  }
}

// Immutable.
class Gradient {
 public:
  explicit Gradient(const ReductionDesc& desc)
      : desc_(desc), src_(desc.src), diff_src_(desc.diff_src), diff_dst_(desc.diff_dst) {
    for (int d = 0; d < desc.src.rank(); ++d)
      reduced_.push_back(desc.dst.dim(d) == 1 ? desc.src.dim(d) : 1);
  }

  void RunElement(const ReferencePiece& piece, const Dims& index) const {
    const auto* src = piece.Get<const float>(kArgSrc);
    auto* diff_src = piece.Get<float>(kArgDiffSrc);
    const double gradient = piece.Get<const float>(kArgDiffDst)[diff_dst_.Offset(index)];
    const Combined combined = CombineAll(src, index);
    ForEachReduced(index, [&](const Dims& at) {
      const double slope = SlopeOf(desc_, combined, src[src_.Offset(at)]);
      diff_src[diff_src_.Offset(at)] = slope == 0 ? 0.0f : static_cast<float>(slope * gradient);
    });
  }

  const Dims& reduced() const { return reduced_; }

 private:
  template <typename Visit>
  void ForEachReduced(const Dims& index, Visit visit) const {
    ForEachOperation(reduced_, [&](Dims at) {
      for (size_t d = 0; d < at.size(); ++d) at[d] += index[d];
      visit(static_cast<const Dims&>(at));
    });
  }

  Combined CombineAll(const float* src, const Dims& index) const {
    Combined combined{NeutralElement(desc_.algorithm)};
    ForEachReduced(index, [&](const Dims& at) {
      const double x = src[src_.Offset(at)];
      combined.value = Combine(desc_, combined.value, x);
      if (x == 0) {
        ++combined.zeros;
      } else {
        combined.product_of_others *= x;
      }
    });
    if (!IsExtremum(desc_.algorithm)) return combined;
    ForEachReduced(index, [&](const Dims& at) {
      combined.takers += IsTaken(src[src_.Offset(at)], combined.value) ? 1 : 0;
    });
    return combined;
  }

  const ReductionDesc desc_;
  Dims reduced_;  // the box of src that falls on one element of dst
  const SeparableOffsets src_, diff_src_, diff_dst_;
};

}  // namespace

PrimitiveInfo BackwardInfoOf(const Request<ReductionDesc>& request) {
  const ReductionDesc& desc = request.desc;
  return BasicInfo(
      request, {{kArgSrc, desc.src}, {kArgDiffDst, desc.diff_dst}, {kArgDiffSrc, desc.diff_src}});
}

absl::StatusOr<ReductionDesc> ResolveReferenceBackward(const Request<ReductionDesc>& request) {
  ABSL_RETURN_IF_ERROR(RequireF32(request.desc.dst));
  return ResolveF32Gradients(request, request.desc.src);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReferenceBackward(
    const Request<ReductionDesc>& request) {
  const ReductionDesc& desc = request.desc;
  Gradient gradient(desc);
  Dims operations = gradient.reduced();
  operations.push_back(3);  // walks over them
  return CreateReferencePrimitive(
      BackwardInfoOf(request), {desc.dst.dims(), operations},
      [gradient = std::move(gradient)](const ReferencePiece& piece) {
        piece.ForEach([&](const Dims& index) { gradient.RunElement(piece, index); });
      });
}

}  // namespace tilewire::reduction
