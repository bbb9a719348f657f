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

// The rows of the source that belong to one image of a run; 1 where that is not known. Counts of
// rows that requests decide are none of an image.
int64_t RowsPerImage(const OperationContext& context) {
  if (context.settings().requests_decide_sizes) return 1;
  int64_t images = 0;
  for (ValueId input : context.network().inputs) {
    const Dims& dims = context.value(input).dims;
    if (dims.empty() || (images > 0 && dims[0] != images)) return 1;
    images = dims[0];
  }
  const int64_t rows = context.src_value().dims[0];
  return images > 0 && rows % images == 0 ? rows / images : 1;
}

// Products by planes wait longer for their weights than those of vectors do, which fewer rows than
// a tile's do not make up for. This is of the rows of an image, so that bits do not depend on the
// batch.
Precision PrecisionOf(const network::InnerProduct& product, const OperationContext& context) {
  constexpr int64_t kFewestRows = 16;
  if (product.src_quantization) return Precision::kExact;
  const Precision permitted = context.precision();
  const bool waits = permitted == Precision::kFast && RowsPerImage(context) < kFewestRows;
  return waits ? Precision::kExact : permitted;
}

}  // namespace

absl::Status LowerInnerProduct(const network::InnerProduct& product, OperationContext& context) {
  const WeightedOperation operation(product);
  ABSL_ASSIGN_OR_RETURN(Fusion fusion, PlanFusion(operation, context.settings()));
  fusion.attributes.precision = PrecisionOf(product, context);
  Dims weights = context.src_value().dims;
  weights[0] = context.dst_value().dims[1];
  InnerProductDesc desc;
  ABSL_ASSIGN_OR_RETURN(desc.dst, context.AnyDesc(context.dst()));
  ABSL_ASSIGN_OR_RETURN(desc.weights, WeightsDesc(operation, weights, context.settings()));
  ABSL_ASSIGN_OR_RETURN(desc.bias, BiasDesc(fusion.bias));
  ABSL_ASSIGN_OR_RETURN(auto primitive,
                        CreateInnerProductFor(std::move(desc), fusion.attributes, context));
  return context.BindResult(EmitWeighted(operation, fusion, std::move(primitive), context));
}

}  // namespace tilewire::lowering
