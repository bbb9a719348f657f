// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/kernels/planes/bf16_rounding.h"
#include "engine/kernels/products/packed_product.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/driven_primitive.h"
#include "engine/primitives/inner_product/implementations.h"
#include "engine/primitives/inner_product/packed_layouts.h"
#include "engine/threading/ranges.h"

namespace tilewire::inner_product {
namespace {

constexpr int kPairLanes = 16;  // of f32 in a register

// First all rows are rounded to the scratchpad, in whole lines; then a task is one group of output
// blocks for all images.
struct PairsDriver {
  void Run(const DrivenRun& run) const {
    const auto* src = run.First<const float>(kArgSrc);
    constexpr int64_t kLinesAtOnce = 512;
    const int64_t lines = DivUp(row_numbers, kBf16LineNumbers);
    const int64_t at_once = threading::ItemsAtOnce(kLinesAtOnce, lines);
    threading::ParallelForItems(run.team, rows, at_once, [&](int64_t row) {
      rounding->Round(src + row * row_numbers, row_numbers,
                      run.scratchpad + row * lines * kBf16LineBytes);
    });
    product->RunAll(
        rows,
        {reinterpret_cast<const float*>(run.scratchpad), run.First<const float>(kArgWeights),
         run.First<const float>(kArgBias), run.First<float>(kArgDst)},
        run.team);
  }

  int64_t code_bytes() const {
    return product->code_bytes() + static_cast<int64_t>(rounding->code_bytes());
  }

  int64_t rows, row_numbers;
  std::unique_ptr<const PackedProduct> product;
  std::unique_ptr<const Bf16Rounding> rounding;
};

// "AB16a2b" of nc; "ABcd8b16a2b" of nChw16c; of images in another order, whose innermost size must
// be even, "AcdB16a2b".
absl::StatusOr<MemoryDesc> PairedWeights(const InnerProductDesc& desc) {
  std::string inputs(LayoutPattern(desc.src));
  inputs.erase(inputs.find('a'), 1);  // the batch
  const bool is_blocked = !desc.src.inner_blocks().empty();
  for (size_t d = 1; !is_blocked && d < inputs.size() && desc.src.dim(inputs.back() - 'a') == 1;
       ++d)
    std::rotate(inputs.begin(), inputs.end() - 1, inputs.end());  // sizes of 1 stand anywhere
  const char innermost = inputs.back();
  const int64_t size =
      is_blocked ? desc.src.inner_blocks().back().size : desc.src.dim(innermost - 'a');
  if (size % kPairNumbers != 0 && size != desc.src.stride(0))
    return Unimplemented("the innermost size of an image is odd");
  if (is_blocked) {
    if (desc.src.inner_blocks().size() > 1) return Unimplemented("src has more than one block");
    inputs.erase(inputs.size() - absl::StrCat(size).size() - 1);
    absl::StrAppend(&inputs, size / kPairNumbers, std::string(1, innermost));
  } else {
    inputs.back() = absl::ascii_toupper(innermost);
  }
  absl::StrAppend(&inputs, kPairLanes, "a", kPairNumbers, std::string(1, innermost));
  return MemoryDesc::CreatePattern(desc.weights.dims(), DataType::kBf16, absl::StrCat("A", inputs));
}

}  // namespace

absl::StatusOr<InnerProductDesc> ResolvePairs(const Request<InnerProductDesc>& request) {
  const InnerProductDesc& desc = request.desc;
  InnerProductDesc real = desc;
  if (desc.weights.data_type() == DataType::kBf16) {
    ABSL_ASSIGN_OR_RETURN(real.weights, desc.weights.WithDataType(DataType::kF32));
  }
  ABSL_RETURN_IF_ERROR(RequireForwardF32(real, request.attributes));
  InnerProductDesc resolved = desc;
  ABSL_RETURN_IF_ERROR(ResolveSrcAndDst(&resolved));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc packed, PairedWeights(resolved));
  const bool may_pack = desc.weights.IsAny() && desc.weights.data_type() == DataType::kF32;
  if (may_pack) resolved.weights = packed;
  if (resolved.weights != packed) return Unimplemented("weights are not ", packed.ToString());
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreatePairs(const Request<InnerProductDesc>& request) {
  const InnerProductDesc& desc = request.desc;
  const int64_t rows = desc.src.dim(0), numbers = desc.src.stride(0);
  const int64_t row_bytes = DivUp(numbers, kBf16LineNumbers) * kBf16LineBytes;
  const auto bytes = CheckedMul(rows, row_bytes);
  if (!bytes) return ResourceExhausted("the rounded copy of src is too large");
  const PackedProduct::Shape shape = {.k = DivUp(numbers, kPairNumbers),
                                      .outputs = desc.dst.dim(1),
                                      .pairs = true,
                                      .src_row_stride = row_bytes / int64_t{sizeof(float)},
                                      .dst_row_stride = desc.dst.stride(0),
                                      .bias = !desc.bias.IsZero(),
                                      .post_ops = request.attributes.post_ops,
                                      .rows = {rows}};
  ABSL_ASSIGN_OR_RETURN(
      auto product,
      PackedProduct::Create(request.facts.name, VectorUnit::Of(request.facts.isa), shape));
  ABSL_ASSIGN_OR_RETURN(auto rounding, jit::Compile<Bf16Rounding>(request.facts.name));
  PrimitiveInfo info = InfoOf(request);
  info.scratchpad_bytes = *bytes;
  return MakeDriven(std::move(info),
                    PairsDriver{rows, numbers, std::move(product), std::move(rounding)});
}

}  // namespace tilewire::inner_product
