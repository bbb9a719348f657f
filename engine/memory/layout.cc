// SPDX-License-Identifier: Apache-2.0
#include "engine/memory/layout.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "engine/base/check.h"

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

absl::string_view PlainPattern(int rank) {
  return absl::string_view("abcdefghijkl").substr(0, rank);
}

absl::StatusOr<MemoryDesc> OrLayoutOf(const MemoryDesc& desc, const MemoryDesc& like) {
  if (!desc.IsAny()) return desc;
  const bool same = like.dims() == desc.dims() && like.data_type() == desc.data_type();
  if (same && !like.Overlaps()) return like;
  return MemoryDesc::CreatePattern(desc.dims(), desc.data_type(), LayoutPattern(like));
}

absl::StatusOr<MemoryDesc> OrPattern(const MemoryDesc& desc, absl::string_view pattern) {
  if (!desc.IsAny()) return desc;
  return MemoryDesc::CreatePattern(desc.dims(), desc.data_type(), pattern);
}

absl::StatusOr<MemoryDesc> OrPlain(const MemoryDesc& desc) {
  if (desc.IsOpaque()) {
    return Unimplemented("does not read ", desc.ToString());
  }
  return OrPattern(desc, PlainPattern(desc.rank()));
}

MemoryDesc RowMajorF32(const Dims& dims) {
  absl::StatusOr<MemoryDesc> desc =
      MemoryDesc::CreatePattern(dims, DataType::kF32, PlainPattern(static_cast<int>(dims.size())));
  TILEWIRE_CHECK(desc.ok(), "the parts of a valid tensor have a size");
  return *std::move(desc);
}

absl::Status RequireRowMajor(const MemoryDesc& desc) {
  const absl::StatusOr<MemoryDesc> plain =
      MemoryDesc::CreatePattern(desc.dims(), desc.data_type(), PlainPattern(desc.rank()));
  if (plain.ok() && desc == *plain) return absl::OkStatus();
  return Unimplemented("is not row-major: ", desc.ToString());
}

}  // namespace tilewire
