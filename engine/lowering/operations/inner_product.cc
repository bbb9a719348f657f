// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/weighted/weighted_operation.h"

namespace tilewire::lowering {
namespace {

// Reads the source where it is, because the weights can be packed to match its layout; asks for the
// layout that the primitive would choose only where this would leave the reference.
absl::StatusOr<std::shared_ptr<const Primitive>> CreateInnerProductFor(InnerProductDesc desc,
                                                                       const Attributes& attributes,
                                                                       OperationContext& context) {
  if (!context.plan().IsUnplaced(context.src())) {
    ABSL_ASSIGN_OR_RETURN(const Place home, context.Home(context.src()));
    desc.src = home.desc;
    auto primitive = context.CreateLayer(desc, attributes);
    if (primitive.ok() && !(*primitive)->info().traits.is_reference) return primitive;
  }
  ABSL_ASSIGN_OR_RETURN(desc.src, context.AnyDesc(context.src()));
  return context.CreateLayer(desc, attributes);
}

}  // namespace

absl::Status LowerInnerProduct(const network::InnerProduct& product, OperationContext& context) {
  const WeightedOperation operation(product);
  ABSL_ASSIGN_OR_RETURN(Fusion fusion, PlanFusion(operation, context.settings()));
  if (!product.src_quantization) fusion.attributes.precision = context.precision();
  Dims weights = context.src_value().dims;
  weights[0] = context.dst_value().dims[1];
  InnerProductDesc desc;
  ABSL_ASSIGN_OR_RETURN(desc.dst, context.AnyDesc(context.dst()));
  ABSL_ASSIGN_OR_RETURN(desc.weights, MemoryDesc::CreateAny(weights, operation.WeightsType()));
  ABSL_ASSIGN_OR_RETURN(desc.bias, BiasDesc(fusion.bias));
  ABSL_ASSIGN_OR_RETURN(auto primitive,
                        CreateInnerProductFor(std::move(desc), fusion.attributes, context));
  return context.BindResult(EmitWeighted(operation, fusion, std::move(primitive), context));
}

}  // namespace tilewire::lowering
