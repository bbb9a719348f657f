// SPDX-License-Identifier: Apache-2.0
//
// The executable specification of backward: any layouts, in double. Results are the elements of
// diff_src0 and, after them, those of diff_src1, which are sums over what is broadcast.
#include <cmath>
#include <optional>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/layout.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/binary/implementations.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reference_primitive.h"

namespace tilewire::binary {
namespace {

// The derivatives by either source.
struct Slopes {
  double by_x, by_y;
};

Slopes SlopesOf(BinaryAlgorithm algorithm, double x, double y) {
  switch (algorithm) {
    case BinaryAlgorithm::kAdd:
      return {1, 1};
    case BinaryAlgorithm::kSub:
      return {1, -1};
    case BinaryAlgorithm::kMul:
      return {y, x};
    case BinaryAlgorithm::kDiv:
      return {1 / y, -x / (y * y)};
    case BinaryAlgorithm::kPRelu:
      return x > 0 ? Slopes{1, 0} : Slopes{y, x};
    default:
      break;
  }
  if (x == y) return {0.5, 0.5};
  const bool takes_x = std::isnan(x) || (algorithm == BinaryAlgorithm::kMax ? x > y : x < y);
  return takes_x ? Slopes{1, 0} : Slopes{0, 1};
}

double Product(double slope, double gradient) { return slope == 0 ? 0 : slope * gradient; }

// Immutable.
class Gradient {
 public:
  explicit Gradient(const BinaryDesc& desc)
      : desc_(desc), src0_(desc.src0), src1_(desc.src1), diff_dst_(desc.diff_dst) {
    if (!desc.diff_src0.IsZero()) diff_src0_.emplace(desc.diff_src0);
    if (!desc.diff_src1.IsZero()) diff_src1_.emplace(desc.diff_src1);
    for (int d = 0; d < desc.src0.rank(); ++d)
      broadcast_.push_back(desc.src1.dim(d) == 1 ? desc.src0.dim(d) : 1);
  }

  int64_t FirstCount() const { return diff_src0_ ? desc_.src0.ElementCount() : 0; }
  int64_t SecondCount() const { return diff_src1_ ? desc_.src1.ElementCount() : 0; }
  const Dims& broadcast() const { return broadcast_; }

  void Run(const ReferencePiece& piece, int64_t result) const {
    if (result < FirstCount()) {
      const Dims index = IndexAt(desc_.src0.dims(), result);
      const auto [slopes, gradient] = TermsAt(piece, index);
      piece.Get<float>(kArgDiffSrc)[diff_src0_->Offset(index)] =
          static_cast<float>(Product(slopes.by_x, gradient));
      return;
    }
    const Dims index = IndexAt(desc_.src1.dims(), result - FirstCount());
    double sum = 0;
    ForEachOperation(broadcast_, [&](Dims at) {
      for (size_t d = 0; d < at.size(); ++d) at[d] += index[d];
      const auto [slopes, gradient] = TermsAt(piece, at);
      sum += Product(slopes.by_y, gradient);
    });
    piece.Get<float>(kArgDiffSrc1)[diff_src1_->Offset(index)] = static_cast<float>(sum);
  }

 private:
  std::pair<Slopes, double> TermsAt(const ReferencePiece& piece, const Dims& index) const {
    const Dims second = BroadcastIndex(desc_.src1.dims(), index);
    return {SlopesOf(desc_.algorithm, piece.Get<const float>(kArgSrc)[src0_.Offset(index)],
                     piece.Get<const float>(kArgSrc1)[src1_.Offset(second)]),
            piece.Get<const float>(kArgDiffDst)[diff_dst_.Offset(index)]};
  }

  const BinaryDesc desc_;
  const SeparableOffsets src0_, src1_, diff_dst_;
  std::optional<SeparableOffsets> diff_src0_, diff_src1_;
  Dims broadcast_;  // the box of src0 that falls on one element of src1
};

}  // namespace

absl::StatusOr<BinaryDesc> ResolveReferenceBackward(const Request<BinaryDesc>& request) {
  ABSL_RETURN_IF_ERROR(RequireF32(request.desc.src0, request.desc.src1, request.desc.dst));
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(request.attributes));
  BinaryDesc resolved = request.desc;
  ABSL_ASSIGN_OR_RETURN(resolved.diff_src0, OrLayoutOf(resolved.diff_src0, resolved.src0));
  ABSL_ASSIGN_OR_RETURN(resolved.diff_src1, OrLayoutOf(resolved.diff_src1, resolved.src1));
  ABSL_ASSIGN_OR_RETURN(resolved.diff_dst, OrLayoutOf(resolved.diff_dst, resolved.src0));
  return resolved;
}

PrimitiveInfo BackwardInfoOf(const Request<BinaryDesc>& request) {
  const BinaryDesc& desc = request.desc;
  std::vector<ArgDesc> args = {
      {kArgSrc, desc.src0}, {kArgSrc1, desc.src1}, {kArgDiffDst, desc.diff_dst}};
  if (!desc.diff_src0.IsZero()) args.push_back({kArgDiffSrc, desc.diff_src0});
  if (!desc.diff_src1.IsZero()) args.push_back({kArgDiffSrc1, desc.diff_src1});
  return BasicInfo(request, std::move(args));
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReferenceBackward(
    const Request<BinaryDesc>& request) {
  const BinaryDesc& desc = request.desc;
  Gradient gradient(desc);
  const Dims results = {gradient.FirstCount() + gradient.SecondCount()};
  const Dims operations = gradient.SecondCount() > 0 ? gradient.broadcast() : Dims{};
  return CreateReferencePrimitive(
      BackwardInfoOf(request), {results, operations},
      [gradient = std::move(gradient)](const ReferencePiece& piece) {
        piece.ForEach([&](const Dims& result) { gradient.Run(piece, result[0]); });
      });
}

}  // namespace tilewire::binary
