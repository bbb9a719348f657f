// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/operations/forward_requests.h"

namespace tilewire::lowering {

// A sum of |x|^p is the p-th power of a norm.
ReductionDesc RequestOf(network::Reduce::Function function) {
  using Function = network::Reduce::Function;
  switch (function) {
    case Function::kSum:
      return {.algorithm = ReductionAlgorithm::kSum};
    case Function::kMean:
      return {.algorithm = ReductionAlgorithm::kMean};
    case Function::kMax:
      return {.algorithm = ReductionAlgorithm::kMax};
    case Function::kMin:
      return {.algorithm = ReductionAlgorithm::kMin};
    case Function::kProduct:
      return {.algorithm = ReductionAlgorithm::kMul};
    case Function::kSumOfAbs:
      return {.algorithm = ReductionAlgorithm::kNormLpPowerPSum, .p = 1};
    case Function::kSumOfSquares:
      return {.algorithm = ReductionAlgorithm::kNormLpPowerPSum, .p = 2};
  }
  return {};
}

// Keeps the layout of its source.
absl::Status LowerReduce(const network::Reduce& reduce, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Place src, context.Home(context.src()));
  ReductionDesc desc = RequestOf(reduce.function);
  desc.src = src.desc;
  ABSL_ASSIGN_OR_RETURN(desc.dst, context.DstLike(src.desc));
  return context.EmitUnary(context.Create(desc), src);
}

}  // namespace tilewire::lowering
