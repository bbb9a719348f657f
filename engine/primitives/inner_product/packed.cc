// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/jit/vector_unit.h"
#include "engine/kernels/products/packed_product.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/inner_product/implementations.h"
#include "engine/primitives/inner_product/packed_layouts.h"

namespace tilewire::inner_product {
namespace {

// Immutable. A task is one group of output blocks for all images.
class Packed final : public Primitive {
 public:
  Packed(PrimitiveInfo info, std::unique_ptr<const PackedProduct> product)
      : Primitive(std::move(info)), product_(std::move(product)) {}

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    product_->RunAll(Desc(kArgSrc).dim(0),
                     {First<const float>(args, kArgSrc), First<const float>(args, kArgWeights),
                      First<const float>(args, kArgBias), First<float>(args, kArgDst)},
                     team);
  }

  const std::unique_ptr<const PackedProduct> product_;
};

}  // namespace

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
  return std::make_unique<Packed>(WithCode(InfoOf(request), *product), std::move(product));
}

}  // namespace tilewire::inner_product
