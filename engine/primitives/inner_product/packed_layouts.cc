// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/inner_product/packed_layouts.h"

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/kernels/products/packed_product.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"

namespace tilewire::inner_product {

std::string PackedPattern(const MemoryDesc& src, int lanes) {
  std::string inputs = LayoutPattern(src);
  inputs.erase(inputs.find('a'), 1);  // the batch
  return absl::StrCat("A", inputs, lanes, "a");
}

absl::Status ResolveSrcAndDst(InnerProductDesc* desc) {
  for (MemoryDesc* tensor : {&desc->src, &desc->dst, &desc->bias}) {
    ABSL_ASSIGN_OR_RETURN(*tensor, OrPlain(*tensor));
  }
  const MemoryDesc &src = desc->src, &dst = desc->dst;
  const int64_t image = src.dim(0) == 0 ? 0 : src.PaddedElementCount() / src.dim(0);
  if (!src.IsDense() || src.BlockSize(0) != 1 || src.stride(0) != image) {
    return Unimplemented("src is not one dense image after the other");
  }
  if (!dst.IsPlain() || dst.stride(1) != 1) return Unimplemented("dst is not nc");
  if (!desc->bias.IsZero() && (desc->bias.stride(0) != 1 || desc->bias.offset0() != 0)) {
    return Unimplemented("bias is not dense");
  }
  if (dst.ElementCount() == 0 || src.ElementCount() == 0)
    return Unimplemented("nothing to compute");
  if (src.stride(0) > PackedProduct::kLongestRow || dst.stride(0) > PackedProduct::kLongestStride)
    return Unimplemented("strides over 31 bits");
  return absl::OkStatus();
}

}  // namespace tilewire::inner_product
