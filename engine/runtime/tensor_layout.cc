// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/tensor_layout.h"

#include <string>

#include "engine/memory/layout.h"

namespace tilewire::runtime {
namespace {

// Whether dimension `d` has the stride and blocks of row-major order, in which its stride is
// `step`.
bool DimensionIsRowMajor(const MemoryDesc& desc, int d, int64_t step) {
  const int64_t block = desc.BlockSize(d);
  if (desc.dim(d) / block > 1 && desc.stride(d) != step * block) return false;
  int64_t inner_stride = 1;  // in memory, of the current block
  int64_t inner_step = step;
  for (auto it = desc.inner_blocks().rbegin(); it != desc.inner_blocks().rend(); ++it) {
    if (it->dim == d) {
      if (it->size > 1 && inner_stride != inner_step) return false;
      inner_step *= it->size;
    }
    inner_stride *= it->size;
  }
  return true;
}

}  // namespace

absl::StatusOr<MemoryDesc> PlainDesc(const Dims& dims, DataType type, bool channels_last) {
  std::string pattern;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (channels_last && d == 1 && dims.size() > 2) continue;
    pattern.push_back(static_cast<char>('a' + d));
  }
  if (channels_last && dims.size() > 2) pattern.push_back('b');
  return MemoryDesc::CreatePattern(dims, type, pattern);
}

absl::StatusOr<MemoryDesc> NestedDesc(const Dims& dims, DataType type,
                                      absl::Span<const int> order) {
  std::string pattern;
  for (int d : order) pattern.push_back(static_cast<char>('a' + d));
  return MemoryDesc::CreatePattern(dims, type, pattern);
}

bool IsRowMajorInMemory(const MemoryDesc& desc) {
  if (desc.format_kind() != FormatKind::kBlocked || desc.HasPadding() || desc.offset0() != 0)
    return false;
  int64_t step = 1;
  for (int d = desc.rank() - 1; d >= 0; --d) {
    if (!DimensionIsRowMajor(desc, d, step)) return false;
    step *= desc.dim(d);
  }
  return true;
}

bool SameStrides(const MemoryDesc& a, const MemoryDesc& b) {
  for (int d = 0; d < a.rank(); ++d) {
    if (a.padded_dims()[d] > a.BlockSize(d) && a.stride(d) != b.stride(d)) return false;
  }
  return true;
}

bool SameMemory(const MemoryDesc& a, const MemoryDesc& b) {
  if (a == b) return true;
  return a.data_type() == b.data_type() && a.dims() == b.dims() && IsRowMajorInMemory(a) &&
         IsRowMajorInMemory(b);
}

absl::StatusOr<MemoryDesc> LayoutLike(const MemoryDesc& desc, const Dims& dims) {
  const FormatTag tag = desc.Tag();
  if (tag != FormatTag::kUndef && FormatTagRank(tag) == static_cast<int>(dims.size())) {
    return MemoryDesc::Create(dims, desc.data_type(), tag);
  }
  if (desc.rank() == static_cast<int>(dims.size()))
    return MemoryDesc::CreatePattern(dims, desc.data_type(), LayoutPattern(desc));
  return PlainDesc(dims, desc.data_type(), /*channels_last=*/false);
}

}  // namespace tilewire::runtime
