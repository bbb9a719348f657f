// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/matmul/integer_plan.h"

#include "engine/base/cache_line.h"
#include "engine/base/checked_math.h"

namespace tilewire::matmul {
namespace {

constexpr uint8_t kFlip = 0x80;
constexpr int32_t kFlipped = 128;

}  // namespace

IntegerPlan::IntegerPlan(const MatmulDesc& desc, const PostOps& post_ops, cpu::Isa isa)
    : kind(isa), shape(ShapeOf(desc)), src_batch(MatricesOf(desc.src)) {
  k = RoundUp(shape.k, kind.step());
  max_rows = kind.MaxRows(post_ops);
  groups = DivUp(shape.n, kind.columns());
  src_is_signed = desc.src.data_type() == DataType::kS8;
  src = {0, desc.src_zero_point, !desc.range.IsZero()};
  weights = {0, desc.weights_zero_point, !desc.weights_range.IsZero()};
  if (src_is_signed && kind.TakesUnsignedOnly()) {
    src.flip = kFlip;
    src.zero += kFlipped;
    src_is_signed = false;
  }
  if (desc.weights.data_type() == DataType::kU8) {
    weights.flip = kFlip;
    weights.zero -= kFlipped;
  }
  copies_src = src.flip != 0 || k != shape.k || StrideOf(desc.src, 0) != 1;
  PlaceParts();
}

void IntegerPlan::PlaceParts() {
  int64_t bytes = 0;
  bool fits = true;
  // Returns where the part begins.
  const auto place = [&](bool is_needed, std::initializer_list<int64_t> sizes) {
    const int64_t begin = bytes;
    const std::optional<int64_t> size = CheckedProduct(sizes);
    const std::optional<int64_t> end =
        size ? CheckedAdd(bytes, *size / kLineBytes * kLineBytes + kLineBytes) : std::nullopt;
    fits = fits && end;
    if (is_needed && fits) bytes = *end;
    return begin;
  };
  constexpr int64_t kSum = sizeof(int32_t);
  place(true, {shape.weights_batch, groups, kind.columns(), k});
  columns_at = place(src.has_zero(), {shape.weights_batch, groups, kind.columns(), kSum});
  src_at = place(copies_src, {src_batch, shape.m, k});
  rows_at = place(weights.has_zero(), {src_batch, shape.m, kSum});
  scales_at = place(src.has_range, {kind.columns(), kSum});
  if (fits) scratchpad_bytes = bytes;
}

}  // namespace tilewire::matmul
