// SPDX-License-Identifier: Apache-2.0
//
// The fast rows of the gradients: a matrix product of the same table, of diff_dst and the other
// side, transposed by its strides. Where all of a batch shares the weights, their gradient is a sum
// over the batch: one product over the rows of all.
#include <optional>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/matmul/batches.h"
#include "engine/primitives/matmul/implementations.h"
#include "engine/primitives/reordered.h"
#include "engine/primitives/weighted_gradients.h"

namespace tilewire::matmul {
namespace {

bool IsOfSrc(const MatmulDesc& desc) { return desc.prop_kind == PropKind::kBackwardData; }

// Strides from the first element on, the last two dimensions exchanged.
absl::StatusOr<MemoryDesc> Transposed(const MemoryDesc& matrices) {
  std::vector<int> order;
  for (int d = 0; d < matrices.rank(); ++d) order.push_back(d);
  std::swap(order[matrices.rank() - 2], order[matrices.rank() - 1]);
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc transposed, matrices.Permuted(order));
  return transposed.WithStrides(transposed.strides());
}

absl::StatusOr<MemoryDesc> FromFirst(const MemoryDesc& matrices) {
  return matrices.WithStrides(matrices.strides());
}

// All rows of a batch as one matrix.
absl::StatusOr<MemoryDesc> JoinedRows(const MemoryDesc& matrices) {
  const int last = matrices.rank() - 1;
  int64_t rows = 1, step = 0;
  for (int d = last - 1; d >= 0; --d) {
    if (matrices.dim(d) == 1) continue;
    if (rows == 1) step = matrices.stride(d);
    if (matrices.stride(d) != rows * step)
      return Unimplemented("rows of ", matrices.ToString(), " are not evenly spaced");
    rows *= matrices.dim(d);
  }
  return MemoryDesc::CreateStrided({rows, matrices.dim(last)}, DataType::kF32,
                                   {step, matrices.stride(last)});
}

bool IsShared(const MatmulDesc& desc, const MemoryDesc& own) {
  for (int d = 0; d < desc.dst.rank() - 2; ++d) {
    if (own.dim(d) != desc.dst.dim(d)) return true;
  }
  return false;
}

// diff_weights[k,n] = sum over all rows of src[row,k] * diff_dst[row,n]
absl::StatusOr<MatmulDesc> ProductOfAllRows(const MatmulDesc& desc) {
  if (MatricesOf(desc.weights) != 1 || IsShared(desc, desc.src))
    return Unimplemented("sums over the whole batch only");
  const int last = desc.dst.rank() - 1;
  MatmulDesc inner{.prop_kind = PropKind::kForwardTraining};
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc src, JoinedRows(desc.src));
  ABSL_ASSIGN_OR_RETURN(inner.src, Transposed(src));
  ABSL_ASSIGN_OR_RETURN(inner.weights, JoinedRows(desc.dst));
  ABSL_ASSIGN_OR_RETURN(inner.dst,
                        MemoryDesc::CreateStrided(
                            {desc.weights.dim(last - 1), desc.weights.dim(last)}, DataType::kF32,
                            {desc.weights.stride(last - 1), desc.weights.stride(last)}));
  return inner;
}

// The product, of tensors that begin with their first elements: `desc` is resolved.
absl::StatusOr<MatmulDesc> ForwardOf(const MatmulDesc& desc) {
  const MemoryDesc& own = IsOfSrc(desc) ? desc.src : desc.weights;
  MatmulDesc inner{.prop_kind = PropKind::kForwardTraining};
  if (IsShared(desc, own)) {
    if (IsOfSrc(desc)) return Unimplemented("sums no gradients of a src that is broadcast");
    return ProductOfAllRows(desc);
  }
  ABSL_ASSIGN_OR_RETURN(inner.dst, FromFirst(own));
  if (IsOfSrc(desc)) {
    ABSL_ASSIGN_OR_RETURN(inner.src, FromFirst(desc.dst));
    ABSL_ASSIGN_OR_RETURN(inner.weights, Transposed(desc.weights));
  } else {
    ABSL_ASSIGN_OR_RETURN(inner.src, Transposed(desc.src));
    ABSL_ASSIGN_OR_RETURN(inner.weights, FromFirst(desc.dst));
  }
  return inner;
}

// Immutable.
class GradientProduct final : public Primitive {
 public:
  GradientProduct(PrimitiveInfo info, std::shared_ptr<const Primitive> inner, bool of_src,
                  const PostOps& post_ops)
      : Primitive(std::move(info)),
        inner_(std::move(inner)),
        of_src_(of_src),
        post_ops_(post_ops) {}

 private:
  void Run(const ExecuteArgs& args, std::byte* scratchpad,
           const threading::Team& team) const override {
    const auto* const diff_dst = First<const float>(args, kArgDiffDst);
    float* const gradients = First<float>(args, of_src_ ? kArgDiffSrc : kArgDiffWeights);
    ExecuteArgs inside;
    inside.Set(kArgSrc, of_src_ ? diff_dst : First<const float>(args, kArgSrc));
    inside.Set(kArgWeights, of_src_ ? First<const float>(args, kArgWeights) : diff_dst);
    inside.Set(kArgDst, gradients);
    ExecuteStage(*inner_, inside, scratchpad, team);
    if (!of_src_) return;
    ApplyMask(post_ops_, Desc(kArgDiffSrc), First<const float>(args, kArgSrc1), gradients, team);
  }

  const std::shared_ptr<const Primitive> inner_;
  const bool of_src_;
  const PostOps post_ops_;
};

absl::StatusOr<Candidate<MatmulDesc>> InnerProductOf(const Request<MatmulDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(const MatmulDesc inner, ForwardOf(request.desc));
  const Attributes inside = WithoutMask(request.attributes);
  return FindInnerRow<MatmulDesc>(MatmulImplementations(), {inner},
                                  {inner, inside, request.facts, request.machine});
}

}  // namespace

absl::StatusOr<MatmulDesc> ResolveBackward(const Request<MatmulDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(const MatmulDesc resolved, ResolveReferenceBackward(request));
  for (const MemoryDesc* tensor : {&resolved.src, &resolved.weights, &resolved.dst}) {
    if (!tensor->IsPlain()) return Unimplemented(tensor->ToString(), " has blocks");
  }
  ABSL_RETURN_IF_ERROR(RequireMaskable(resolved.src, request.attributes));
  ABSL_RETURN_IF_ERROR(InnerProductOf(request.With(resolved)).status());
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateBackward(const Request<MatmulDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(const Candidate<MatmulDesc> found, InnerProductOf(request));
  const Attributes inside = WithoutMask(request.attributes);
  ABSL_ASSIGN_OR_RETURN(std::unique_ptr<Primitive> inner,
                        found.row->create({found.resolved, inside, *found.row, request.machine}));
  ABSL_RETURN_IF_ERROR(FinishCreation(inside, {}, inner.get()));
  PrimitiveInfo info = GradientInfoOf(request);
  info.scratchpad_bytes = inner->info().scratchpad_bytes;
  info.code_bytes = inner->info().code_bytes;
  return std::make_unique<GradientProduct>(std::move(info), std::move(inner), IsOfSrc(request.desc),
                                           request.attributes.post_ops);
}

}  // namespace tilewire::matmul
