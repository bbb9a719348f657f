// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/layout.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace tilewire {

std::string LayoutPattern(const MemoryDesc& desc) {
  if (FormatTag tag = desc.Tag(); tag != FormatTag::kUndef)
    return std::string(FormatTagPattern(tag));
  absl::InlinedVector<int, 6> order(desc.rank());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return desc.stride(a) > desc.stride(b); });
  std::string pattern;
  for (int d : order) {
    const char letter = static_cast<char>('a' + d);
    pattern.push_back(desc.BlockSize(d) > 1 ? absl::ascii_toupper(letter) : letter);
  }
  for (const InnerBlock& block : desc.inner_blocks()) {
    absl::StrAppend(&pattern, block.size, std::string(1, static_cast<char>('a' + block.dim)));
  }
  return pattern;
}

absl::StatusOr<MemoryDesc> OrLayoutOf(const MemoryDesc& desc, const MemoryDesc& like) {
  if (!desc.IsAny()) return desc;
  return MemoryDesc::CreatePattern(desc.dims(), desc.data_type(), LayoutPattern(like));
}

void ForEachIndex(const Dims& dims, int64_t first,
                  absl::FunctionRef<void(absl::Span<const int64_t>)> body) {
  const int rank = static_cast<int>(dims.size());
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return;
  Dims index(rank, 0);
  index[0] = first;
  while (true) {
    body(index);
    int d = rank - 1;
    for (; d > 0 && ++index[d] == dims[d]; --d) index[d] = 0;
    if (d <= 0) return;
  }
}

void ZeroPaddedTail(const MemoryDesc& desc, void* bytes) {
  if (!desc.HasPadding()) return;
  const int64_t size = SizeOf(desc.data_type());
  // For each padded dimension: where it is in its tail and the earlier ones are anywhere.
  for (int tail = 0; tail < desc.rank(); ++tail) {
    const int64_t begin = desc.dim(tail);
    Dims span = desc.padded_dims();
    span[tail] -= begin;
    for (int d = 0; d < tail; ++d) span[d] = desc.dim(d);
    for (int64_t first = 0; first < span[0]; ++first) {
      ForEachIndex(span, first, [&](absl::Span<const int64_t> index) {
        Dims shifted(index.begin(), index.end());
        shifted[tail] += begin;
        std::memset(static_cast<char*>(bytes) + desc.Offset(shifted) * size, 0, size);
      });
    }
  }
}

}  // namespace tilewire
