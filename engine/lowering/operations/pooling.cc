// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/operations/forward_requests.h"

namespace tilewire::lowering {
namespace {

PoolingAlgorithm AlgorithmOf(network::Pooling::Algorithm algorithm) {
  switch (algorithm) {
    case network::Pooling::Algorithm::kMax:
      return PoolingAlgorithm::kMax;
    case network::Pooling::Algorithm::kAvgIncludePadding:
      return PoolingAlgorithm::kAvgIncludePadding;
    case network::Pooling::Algorithm::kAvgExcludePadding:
      return PoolingAlgorithm::kAvgExcludePadding;
  }
  return PoolingAlgorithm::kMax;
}

}  // namespace

PoolingDesc RequestOf(const network::Pooling& pooling) {
  return {
      .prop_kind = pooling.saves_places ? PropKind::kForwardTraining : PropKind::kForwardInference,
      .algorithm = AlgorithmOf(pooling.algorithm),
      .kernel = pooling.kernel,
      .strides = pooling.strides,
      .padding_left = pooling.padding_left,
      .padding_right = pooling.padding_right};
}

// Keeps the layout of its source, which may be a part of a larger tensor.
absl::Status LowerPooling(const network::Pooling& pooling, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Place src, context.Home(context.src()));
  PoolingDesc desc = RequestOf(pooling);
  desc.src = src.desc;
  ABSL_ASSIGN_OR_RETURN(desc.dst, context.DstLike(src.desc));
  if (!pooling.saves_places) return context.EmitUnary(context.Create(desc), src);
  ABSL_ASSIGN_OR_RETURN(auto primitive, context.Create(desc));
  const Place places = context.plan().NewPlace(primitive->Desc(kArgWorkspace));
  context.plan().Bind(context.more_dst(0), places);
  return context.EmitUnary(std::move(primitive), src, {{kArgWorkspace, places.buffer}});
}

}  // namespace tilewire::lowering
