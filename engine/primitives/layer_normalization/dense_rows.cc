// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/layer_normalization/dense_rows.h"

#include <limits>

#include "engine/primitives/creation.h"

namespace tilewire::layer_normalization {

absl::Status RequireDenseRows(absl::Span<const MemoryDesc* const> tensors) {
  constexpr int64_t kLongest = int64_t{1} << 28;
  for (const MemoryDesc* md : tensors) {
    if (md->IsZero()) continue;
    const int axis = md->rank() - 1;
    if (!md->IsPlain() || (md->dim(axis) > 1 && md->stride(axis) != 1)) {
      return Unimplemented(md->ToString(), ": elements of a row do not follow each other");
    }
    if (md->dim(axis) < 1 || md->dim(axis) > kLongest) {
      return Unimplemented("takes rows of 1 to ", kLongest);
    }
  }
  return absl::OkStatus();
}

std::optional<int64_t> RowStepOf(const MemoryDesc& md) {
  constexpr int64_t kFarthest = std::numeric_limits<int32_t>::max() / sizeof(float);
  int64_t stride = 0, rows = 1;  // of the inner dimensions
  for (int d = md.rank() - 2; d >= 0; --d) {
    if (md.dim(d) == 1) continue;
    if (rows > 1 && md.stride(d) != rows * stride) return std::nullopt;
    if (rows == 1) stride = md.stride(d);
    rows *= md.dim(d);
  }
  if (stride > kFarthest) return std::nullopt;
  return stride * static_cast<int64_t>(sizeof(float));
}

int64_t RowOffset(const MemoryDesc& md, int64_t row) {
  int64_t offset = md.offset0();
  for (int d = md.rank() - 2; d >= 0; --d) {
    offset += row % md.dim(d) * md.stride(d);
    row /= md.dim(d);
  }
  return offset;
}

}  // namespace tilewire::layer_normalization
