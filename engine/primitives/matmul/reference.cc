// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one element of dst after the other, in f32.
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/kernels/scalar_epilogue.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/separable_offsets.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/layout.h"
#include "engine/primitives/matmul/implementations.h"

namespace tilewire::matmul {
namespace {

// `index` where a dimension of size 1 stands still.
Dims Broadcast(const MemoryDesc& md, Dims index) {
  for (int d = 0; d < md.rank(); ++d) {
    if (md.dim(d) == 1) index[d] = 0;
  }
  return index;
}

// Immutable.
class Reference final : public Primitive {
 public:
  Reference(PrimitiveInfo info, const MatmulDesc& desc, const PostOps& post_ops)
      : Primitive(std::move(info)),
        desc_(desc),
        k_(desc.src.dim(desc.src.rank() - 1)),
        post_ops_(post_ops),
        src_(desc.src),
        weights_(desc.weights),
        bias_(desc.bias),
        dst_(desc.dst) {}

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    if (desc_.dst.ElementCount() == 0) return;
    Dims rest = desc_.dst.dims();
    rest[0] = 1;
    team.ParallelFor(desc_.dst.dim(0), [&](int64_t first) {
      ForEachIndex(rest, [&](Dims index) {
        index[0] = first;
        float& result = args.Get<float>(kArgDst)[dst_.Offset(index)];
        result = ApplyPostOps(post_ops_, Value(args, index), result);
      });
    });
    ZeroPadding(desc_.dst, args.Find(kArgDst));
  }

  float Value(const ExecuteArgs& args, const Dims& index) const {
    const float sum = k_ == 0 ? 0 : Sum(args, index);
    if (desc_.bias.IsZero()) return sum;
    return sum + args.Get<const float>(kArgBias)[bias_.Offset(Broadcast(desc_.bias, index))];
  }

  float Sum(const ExecuteArgs& args, const Dims& index) const {
    const int last = desc_.dst.rank() - 1;
    Dims row = index, column = index;
    row[last] = column[last - 1] = 0;
    const int64_t src_offset = src_.Offset(Broadcast(desc_.src, row));
    const int64_t weights_offset = weights_.Offset(Broadcast(desc_.weights, column));
    float sum = 0;
    for (int64_t k = 0; k < k_; ++k) {
      sum += args.Get<const float>(kArgSrc)[src_offset + src_.At(last, k)] *
             args.Get<const float>(kArgWeights)[weights_offset + weights_.At(last - 1, k)];
    }
    return sum;
  }

  const MatmulDesc desc_;
  const int64_t k_;
  const PostOps post_ops_;
  const SeparableOffsets src_, weights_, bias_, dst_;
};

}  // namespace

absl::StatusOr<MatmulDesc> ResolveReference(const MatmulDesc& desc, const Attributes& attributes,
                                            const ImplementationFacts&) {
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src, desc.weights, desc.bias, desc.dst));
  ABSL_RETURN_IF_ERROR(RequireNoOutputScales(attributes));
  MatmulDesc resolved = desc;
  for (MemoryDesc* tensor : {&resolved.src, &resolved.weights, &resolved.bias, &resolved.dst}) {
    ABSL_ASSIGN_OR_RETURN(*tensor, OrPlain(*tensor));
  }
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const MatmulDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts) {
  return std::make_unique<Reference>(InfoOf(desc, attributes, facts), desc, attributes.post_ops);
}

}  // namespace tilewire::matmul
