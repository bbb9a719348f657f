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
  Packed(PrimitiveInfo primitive_info, const InnerProductDesc& desc,
         std::unique_ptr<const PackedProduct> product)
      : Primitive(std::move(primitive_info)),
        rows_(desc.src.dim(0)),
        src_offset_(desc.src.offset0()),
        dst_offset_(desc.dst.offset0()),
        product_(std::move(product)) {}

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const PackedProduct::Operands operands = {
        args.Get<const float>(kArgSrc) + src_offset_, args.Get<const float>(kArgWeights),
        args.Get<const float>(kArgBias), args.Get<float>(kArgDst) + dst_offset_};
    team.ParallelFor(product_->groups(),
                     [&](int64_t g) { product_->RunGroup(g, rows_, operands); });
  }

  const int64_t rows_, src_offset_, dst_offset_;
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
  if (resolved.weights.IsAny()) resolved.weights = packed;
  if (resolved.weights != packed) {
    return absl::UnimplementedError(absl::StrCat("weights are not ", packed.ToString()));
  }
  return resolved;
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
  PrimitiveInfo primitive_info = InfoOf(request);
  primitive_info.code_bytes = product->code_bytes();
  return std::make_unique<Packed>(std::move(primitive_info), desc, std::move(product));
}

}  // namespace tilewire::inner_product
