// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"

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

// Keeps the layout of its source, which may be a part of a larger tensor.
absl::Status LowerPooling(const network::Pooling& pooling, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Place src, context.Home(context.src()));
  PoolingDesc desc{.algorithm = AlgorithmOf(pooling.algorithm),
                   .src = src.desc,
                   .kernel = pooling.kernel,
                   .strides = pooling.strides,
                   .padding_left = pooling.padding_left,
                   .padding_right = pooling.padding_right};
  ABSL_ASSIGN_OR_RETURN(desc.dst, context.DstLike(src.desc));
  return context.EmitUnary(context.Create(desc), src);
}

}  // namespace tilewire::lowering
