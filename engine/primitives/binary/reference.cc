// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one element after the other.
#include <cmath>

#include "engine/base/status_macros.h"
#include "engine/kernels/tiles/scalar_epilogue.h"
#include "engine/memory/layout.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/binary/implementations.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reference_primitive.h"

namespace tilewire::binary {
namespace {

float Apply(BinaryAlgorithm algorithm, float x, float y) {
  switch (algorithm) {
    case BinaryAlgorithm::kAdd:
      return x + y;
    case BinaryAlgorithm::kMul:
      return x * y;
    case BinaryAlgorithm::kMax:
      return std::isnan(x) || x > y ? x : y;
    case BinaryAlgorithm::kMin:
      return std::isnan(x) || x < y ? x : y;
    case BinaryAlgorithm::kDiv:
      return x / y;
    case BinaryAlgorithm::kSub:
      return x - y;
    case BinaryAlgorithm::kPRelu:
      return x < 0 ? x * y : x;
  }
  return x;
}

}  // namespace

absl::StatusOr<BinaryDesc> ResolveReference(const Request<BinaryDesc>& request) {
  const BinaryDesc& desc = request.desc;
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src0, desc.src1, desc.dst));
  ABSL_RETURN_IF_ERROR(RequireNoOutputScales(request.attributes));
  return WithDst(desc, OrLayoutOf(desc.dst, desc.src0));
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const Request<BinaryDesc>& request) {
  const BinaryDesc& desc = request.desc;
  const auto compute = [desc, post_ops = request.attributes.post_ops,
                        src0 = SeparableOffsets(desc.src0), src1 = SeparableOffsets(desc.src1),
                        dst = SeparableOffsets(desc.dst)](const ReferencePiece& piece) {
    piece.ForEach([&](const Dims& index) {
      const float x = piece.Get<const float>(kArgSrc)[src0.Offset(index)];
      const float y =
          piece.Get<const float>(kArgSrc1)[src1.Offset(BroadcastIndex(desc.src1.dims(), index))];
      float& result = piece.Get<float>(kArgDst)[dst.Offset(index)];
      result = ApplyPostOps(post_ops, Apply(desc.algorithm, x, y), result);
    });
  };
  return CreateReferencePrimitive(InfoOf(request), {desc.dst.dims()}, compute);
}

}  // namespace tilewire::binary
