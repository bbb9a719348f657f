// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/jit/vector_unit.h"
#include "engine/kernels/products/packed_product.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/driven_primitive.h"
#include "engine/primitives/inner_product/implementations.h"
#include "engine/primitives/inner_product/packed_layouts.h"

namespace tilewire::inner_product {
absl::StatusOr<InnerProductDesc> ResolvePacked(const Request<InnerProductDesc>& request) {
  const InnerProductDesc& desc = request.desc;
  const int lanes = jit::VectorUnit::Of(request.facts.isa).lanes();
  ABSL_RETURN_IF_ERROR(RequireForwardF32(desc, request.attributes));
  InnerProductDesc resolved = desc;
  ABSL_RETURN_IF_ERROR(ResolveSrcAndDst(&resolved));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc packed,
                        MemoryDesc::CreatePattern(desc.weights.dims(), DataType::kF32,
                                                  PackedPattern(resolved.src, lanes)));
  return WithWeights(std::move(resolved), packed);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreatePacked(const Request<InnerProductDesc>& request) {
  const InnerProductDesc& desc = request.desc;
  const PackedProduct::Shape shape = {.k = desc.src.stride(0),
                                      .outputs = desc.dst.dim(1),
                                      .src_row_stride = desc.src.stride(0),
                                      .dst_row_stride = desc.dst.stride(0),
                                      .bias = !desc.bias.IsZero(),
                                      .post_ops = request.attributes.post_ops,
                                      .rows = {desc.src.dim(0)}};
  ABSL_ASSIGN_OR_RETURN(
      auto product,
      PackedProduct::Create(request.facts.name, VectorUnit::Of(request.facts.isa), shape));
  return MakeDriven(InfoOf(request), std::move(product),
                    [rows = desc.src.dim(0)](const PackedProduct& driver, const DrivenRun& run) {
                      driver.RunAll(
                          rows,
                          {run.First<const float>(kArgSrc), run.First<const float>(kArgWeights),
                           run.First<const float>(kArgBias), run.First<float>(kArgDst)},
                          run.team);
                    });
}

}  // namespace tilewire::inner_product
