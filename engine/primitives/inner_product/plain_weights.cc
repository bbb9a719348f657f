// SPDX-License-Identifier: Apache-2.0
//
// Weights in plain layouts, read where they lie (kernels/strided_product.h): an image is a row of
// src, and the weights are a matrix of its elements and the outputs.
#include <algorithm>
#include <optional>
#include <utility>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/cpu/cores.h"
#include "engine/jit/vector_unit.h"
#include "engine/kernels/products/strided_product.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/driven_primitive.h"
#include "engine/primitives/inner_product/implementations.h"
#include "engine/primitives/inner_product/packed_layouts.h"
#include "engine/threading/slots.h"

namespace tilewire::inner_product {
namespace {

// Elements between the weights of neighbouring elements of an image, in one output; nullopt where
// that is not one number.
std::optional<int64_t> StepOfInputs(const InnerProductDesc& desc) {
  std::optional<int64_t> step;
  for (int d = 1; d < desc.src.rank(); ++d) {
    if (desc.src.dim(d) == 1) continue;
    const int64_t of_src = desc.src.stride(d), of_weights = desc.weights.stride(d);
    if (of_weights % of_src != 0 || of_weights / of_src != step.value_or(of_weights / of_src))
      return std::nullopt;
    step = of_weights / of_src;
  }
  return step.value_or(1);
}

StridedProduct::Shape ProductOf(const InnerProductDesc& desc, const PostOps& post_ops) {
  return {.m = desc.src.dim(0),
          .n = desc.dst.dim(1),
          .k = desc.src.stride(0),
          .src_row = desc.src.stride(0),
          .src_k = 1,
          .weights_k = StepOfInputs(desc).value_or(0),
          .weights_n = desc.weights.stride(0),
          .dst_row = desc.dst.stride(0),
          .bias = !desc.bias.IsZero(),
          .post_ops = post_ops};
}

// The scratchpad holds the sums of each slot.
void RunInSlots(const StridedProduct& product, int64_t slots, const DrivenRun& run) {
  const StridedProduct::Operands operands = {.src = run.First<const float>(kArgSrc),
                                             .weights = run.First<const float>(kArgWeights),
                                             .copies = nullptr,
                                             .bias = run.First<const float>(kArgBias),
                                             .dst = run.First<float>(kArgDst)};
  auto* const sums = reinterpret_cast<float*>(run.scratchpad);
  threading::ParallelForInSlots(
      run.team, product.pieces(), slots, [&](int64_t piece, int64_t slot) {
        product.RunPiece(piece, operands, sums + slot * product.sums_elements());
      });
}

}  // namespace

absl::StatusOr<InnerProductDesc> ResolvePlainWeights(const Request<InnerProductDesc>& request) {
  ABSL_RETURN_IF_ERROR(RequireForwardF32(request.desc, request.attributes));
  if (request.attributes.precision == Precision::kBf16)
    return Unimplemented("products of bf16 are faster");
  InnerProductDesc resolved = request.desc;
  ABSL_RETURN_IF_ERROR(ResolveSrcAndDst(&resolved));
  const MemoryDesc &src = resolved.src, &weights = resolved.weights;
  if (!weights.IsPlain()) return Unimplemented("weights are not plain");
  if (!src.IsPlain()) return Unimplemented("src is not plain");
  if (!StepOfInputs(resolved))
    return Unimplemented("the inputs of weights are not in the order of src");
  const StridedProduct::Shape shape = ProductOf(resolved, request.attributes.post_ops);
  for (const int64_t stride : {shape.src_row, shape.weights_k, shape.weights_n, shape.dst_row}) {
    if (stride > StridedProduct::kLongestStride) return Unimplemented("strides over 25 bits");
  }
  if (StridedProduct::CopiesPanels(shape))
    return Unimplemented("neither rows nor columns of weights are neighbours");
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreatePlainWeights(
    const Request<InnerProductDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(
      auto product, StridedProduct::Create(request.facts.name, VectorUnit::Of(request.facts.isa),
                                           ProductOf(request.desc, request.attributes.post_ops)));
  const int64_t slots = std::min<int64_t>(product->pieces(), cpu::GrantedCores());
  const auto bytes = CheckedProduct({slots, product->sums_elements(), int64_t{sizeof(float)}});
  if (!bytes) return Unimplemented("the sums overflow a size");
  PrimitiveInfo info = InfoOf(request);
  info.scratchpad_bytes = *bytes;
  return MakeDriven(std::move(info), std::move(product),
                    [slots](const StridedProduct& driver, const DrivenRun& run) {
                      RunInSlots(driver, slots, run);
                    });
}

}  // namespace tilewire::inner_product
