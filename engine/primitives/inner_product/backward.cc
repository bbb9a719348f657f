// SPDX-License-Identifier: Apache-2.0
//
// The fast rows of the gradients: products of matrices whose rows are images, rows of diff_dst and
// the weights of outputs, each read where it lies (engine/kernels/products/strided_product.h).
//
//   diff_src[n,i]     = sum over o of diff_dst[n,o] * weights[o,i]
//   diff_weights[o,i] = sum over n of diff_dst[n,o] * src[n,i]
//
// where i runs over an image in the order of its elements in memory, in which weights have theirs.
#include <algorithm>
#include <utility>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/cpu/cores.h"
#include "engine/jit/vector_unit.h"
#include "engine/kernels/products/strided_product.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/driven_primitive.h"
#include "engine/primitives/inner_product/implementations.h"
#include "engine/primitives/inner_product/packed_layouts.h"
#include "engine/primitives/weighted_gradients.h"
#include "engine/threading/slots.h"

namespace tilewire::inner_product {
namespace {

bool IsOfSrc(const InnerProductDesc& desc) { return desc.prop_kind == PropKind::kBackwardData; }

StridedProduct::Shape GradientProductOf(const InnerProductDesc& desc, const PostOps& post_ops) {
  const int64_t batch = desc.dst.dim(0), outputs = desc.dst.dim(1), image = desc.src.stride(0);
  const int64_t dst_row = desc.dst.stride(0), weights_row = desc.weights.stride(0);
  StridedProduct::Shape shape{.n = image, .weights_n = 1, .adds_parts = true, .post_ops = post_ops};
  if (IsOfSrc(desc)) {
    shape.m = batch;
    shape.k = outputs;
    shape.src_row = dst_row;
    shape.src_k = 1;
    shape.weights_k = weights_row;
    shape.dst_row = image;
  } else {
    shape.m = outputs;
    shape.k = batch;
    shape.src_row = 1;
    shape.src_k = dst_row;
    shape.weights_k = image;
    shape.dst_row = weights_row;
    shape.read_late = true;  // by the optimizer
  }
  return shape;
}

// Immutable.
struct GradientDriver {
  void Run(const DrivenRun& run) const {
    const auto* const diff_dst = run.First<const float>(kArgDiffDst);
    const StridedProduct::Operands operands = {
        .src = diff_dst,
        .weights = run.First<const float>(of_src ? kArgWeights : kArgSrc),
        .copies = nullptr,
        .bias = nullptr,
        .dst = run.First<float>(of_src ? kArgDiffSrc : kArgDiffWeights)};
    auto* const sums = reinterpret_cast<float*>(run.scratchpad);
    threading::ParallelForInSlots(
        run.team, product->pieces(), slots, [&](int64_t piece, int64_t slot) {
          product->RunPiece(piece, operands, sums + slot * product->sums_elements());
        });
    if (has_bias) AddBias(diff_dst, run.First<float>(kArgDiffBias));
    if (of_src) ApplyMask(post_ops, src, run.First<const float>(kArgSrc1), operands.dst, run.team);
  }
  int64_t code_bytes() const { return product->code_bytes(); }

  void AddBias(const float* diff_dst, float* bias) const {
    if (!post_ops.HasSum()) std::fill(bias, bias + outputs, 0.0f);
    for (int64_t n = 0; n < batch; ++n) {
      for (int64_t o = 0; o < outputs; ++o) bias[o] += diff_dst[n * dst_row + o];
    }
  }

  std::unique_ptr<const StridedProduct> product;
  MemoryDesc src;
  PostOps post_ops;
  bool of_src, has_bias;
  int64_t slots, batch, outputs, dst_row;
};

}  // namespace

absl::StatusOr<InnerProductDesc> ResolveBackward(const Request<InnerProductDesc>& request) {
  InnerProductDesc resolved = request.desc;
  ABSL_RETURN_IF_ERROR(RequireF32(resolved.src, resolved.weights, resolved.bias, resolved.dst));
  ABSL_RETURN_IF_ERROR(ResolveSrcAndDst(&resolved));
  if (resolved.src.HasPadding()) return Unimplemented("takes no padded channels");
  const std::string order = LayoutPattern(resolved.src);
  ABSL_ASSIGN_OR_RETURN(resolved.weights, OrPattern(resolved.weights, order));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc like_images,
                        MemoryDesc::CreatePattern(resolved.weights.dims(), DataType::kF32, order));
  if (resolved.weights != like_images || order[0] != 'a')
    return Unimplemented("weights are not ", like_images.ToString());
  const StridedProduct::Shape shape = GradientProductOf(resolved, {});
  for (const int64_t stride : {shape.src_row, shape.src_k, shape.weights_k, shape.dst_row}) {
    if (stride > StridedProduct::kLongestStride) return Unimplemented("strides over 25 bits");
  }
  ABSL_RETURN_IF_ERROR(RequireMaskable(resolved.src, request.attributes));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateBackward(
    const Request<InnerProductDesc>& request) {
  const InnerProductDesc& desc = request.desc;
  ABSL_ASSIGN_OR_RETURN(
      auto product,
      StridedProduct::Create(request.facts.name, VectorUnit::Of(request.facts.isa),
                             GradientProductOf(desc, WithoutMask(request.attributes).post_ops)));
  const int64_t slots = std::min<int64_t>(product->pieces(), cpu::GrantedCores());
  const auto bytes = CheckedProduct({slots, product->sums_elements(), int64_t{sizeof(float)}});
  if (!bytes) return Unimplemented("the sums overflow a size");
  PrimitiveInfo info = GradientInfoOf(request);
  info.scratchpad_bytes = *bytes;
  GradientDriver driver{.product = std::move(product),
                        .src = desc.src,
                        .post_ops = request.attributes.post_ops,
                        .of_src = IsOfSrc(desc),
                        .has_bias = !desc.bias.IsZero(),
                        .slots = slots,
                        .batch = desc.dst.dim(0),
                        .outputs = desc.dst.dim(1),
                        .dst_row = desc.dst.stride(0)};
  return MakeDriven(std::move(info), std::move(driver));
}

}  // namespace tilewire::inner_product
