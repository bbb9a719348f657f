// SPDX-License-Identifier: Apache-2.0
//
// The executable specification of backward: any layouts, in double. A result is one weight: the sum
// of its gradient, and those of all elements of src that fall on it.
#include "engine/base/status_macros.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/gradients.h"
#include "engine/primitives/prelu/implementations.h"
#include "engine/primitives/reference_primitive.h"

namespace tilewire::prelu {
namespace {

double Product(double slope, double gradient) { return slope == 0 ? 0 : slope * gradient; }

// Immutable.
class Gradient {
 public:
  explicit Gradient(const PreluDesc& desc)
      : src_(desc.src),
        weights_(desc.weights),
        diff_src_(desc.diff_src),
        diff_dst_(desc.diff_dst),
        of_weights_(desc.prop_kind == PropKind::kBackward) {
    for (int d = 0; d < desc.src.rank(); ++d)
      sharing_.push_back(desc.weights.dim(d) == 1 ? desc.src.dim(d) : 1);
  }

  // The box of elements that share a weight.
  const Dims& sharing() const { return sharing_; }

  void Run(const ReferencePiece& piece, const Dims& weight) const {
    const double slope = piece.Get<const float>(kArgWeights)[weights_.Offset(weight)];
    double sum = 0;
    ForEachOperation(sharing_, [&](Dims at) {
      for (size_t d = 0; d < at.size(); ++d) at[d] += weight[d];
      const double x = piece.Get<const float>(kArgSrc)[src_.Offset(at)];
      const double dy = piece.Get<const float>(kArgDiffDst)[diff_dst_.Offset(at)];
      piece.Get<float>(kArgDiffSrc)[diff_src_.Offset(at)] =
          static_cast<float>(x > 0 ? dy : Product(slope, dy));
      if (!(x > 0)) sum += Product(x, dy);
    });
    if (of_weights_)
      piece.Get<float>(kArgDiffWeights)[weights_.Offset(weight)] = static_cast<float>(sum);
  }

 private:
  const SeparableOffsets src_, weights_, diff_src_, diff_dst_;
  const bool of_weights_;
  Dims sharing_;
};

}  // namespace

absl::StatusOr<PreluDesc> ResolveReferenceBackward(const Request<PreluDesc>& request) {
  ABSL_RETURN_IF_ERROR(RequireF32(request.desc.weights));
  ABSL_ASSIGN_OR_RETURN(PreluDesc resolved, ResolveF32Gradients(request, request.desc.src));
  ABSL_ASSIGN_OR_RETURN(resolved.weights, WeightsOf(resolved));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReferenceBackward(
    const Request<PreluDesc>& request) {
  Gradient gradient(request.desc);
  const Dims operations = gradient.sharing();
  return CreateReferencePrimitive(
      InfoOfPrelu(request), {request.desc.weights.dims(), operations},
      [gradient = std::move(gradient)](const ReferencePiece& piece) {
        piece.ForEach([&](const Dims& weight) { gradient.Run(piece, weight); });
      });
}

}  // namespace tilewire::prelu
