// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/memory/workspace_tag.h"
#include "service/wire/primitive_decoder.h"
#include "service/wire/status_text.h"

namespace tilewire::service {
namespace {

// The pattern of a dense blocked layout: outer dimensions by descending stride, then the inner
// blocks. Of strides that are equal, the one that counts further than 1 is the outer one: inside
// it, a dimension of one block has the same stride. The caller checks the result.
std::string PatternOf(const MemoryDesc& desc) {
  const auto blocks = [&desc](int d) { return desc.padded_dims()[d] / desc.BlockSize(d); };
  std::vector<int> order(desc.rank());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    if (desc.stride(a) != desc.stride(b)) return desc.stride(a) > desc.stride(b);
    return blocks(a) > 1 && blocks(b) <= 1;
  });
  std::string pattern;
  for (int d : order) {
    pattern.push_back(static_cast<char>((desc.BlockSize(d) > 1 ? 'A' : 'a') + d));
  }
  for (const InnerBlock& block : desc.inner_blocks()) {
    absl::StrAppend(&pattern, block.size);
    pattern.push_back(static_cast<char>('a' + block.dim));
  }
  return pattern;
}

// "nchw, nhwc, ..."
std::string TagsOfRank(int rank) {
  std::string names;
  for (const FormatTagRow& row : FormatTags()) {
    if (FormatTagRank(row.tag) == rank)
      absl::StrAppend(&names, names.empty() ? "" : ", ", row.name);
  }
  return names;
}

}  // namespace

absl::StatusOr<MemoryDesc> DecodeMemoryDesc(const v1::MemoryDesc& message) {
  if (message.dims_size() < 1 || message.dims_size() > kMaxRank) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", message.dims_size(), " is not 1 to ", kMaxRank));
  }
  if (!v1::DataType_IsValid(message.type()) || message.type() == v1::DATA_TYPE_UNDEFINED) {
    return absl::InvalidArgumentError(absl::StrCat(
        "unknown data type ", message.type(), "; allowed are ", v1::DATA_TYPE_F16, " (f16) to ",
        v1::DATA_TYPE_U8, " (u8) and, for indices, ", v1::DATA_TYPE_S64, " (s64)"));
  }
  const Dims dims(message.dims().begin(), message.dims().end());
  const DataType type = static_cast<DataType>(message.type());
  switch (message.layout_case()) {
    case v1::MemoryDesc::kStrides: {
      const auto& values = message.strides().values();
      if (values.size() != message.dims_size()) {
        return absl::InvalidArgumentError(
            absl::StrCat(values.size(), " strides for rank ", message.dims_size()));
      }
      return MemoryDesc::CreateStrided(dims, type, Dims(values.begin(), values.end()));
    }
    case v1::MemoryDesc::kPattern:
      if (message.pattern().size() > 64) {
        return absl::InvalidArgumentError("a pattern of more than 64 letters");
      }
      return MemoryDesc::CreatePattern(dims, type, message.pattern());
    case v1::MemoryDesc::kTag: {
      if (message.tag() == "any") return MemoryDesc::CreateAny(dims, type);
      const absl::StatusOr<FormatTag> tag = ParseFormatTag(message.tag());
      if (!tag.ok() || *tag == FormatTag::kUndef) {
        return absl::InvalidArgumentError(absl::StrCat("unknown format tag ", Quoted(message.tag()),
                                                       "; of rank ", dims.size(), " there are ",
                                                       TagsOfRank(static_cast<int>(dims.size()))));
      }
      return MemoryDesc::Create(dims, type, *tag);
    }
    case v1::MemoryDesc::LAYOUT_NOT_SET:
      break;
  }
  return MemoryDesc::CreatePattern(dims, type, std::string("abcdefghijkl").substr(0, dims.size()));
}

absl::StatusOr<MemoryDesc> DecodeWorkspace(const v1::MemoryDesc& message) {
  uint64_t tag = 0;
  const absl::string_view name = message.tag();
  if (!absl::SimpleHexAtoi(name.substr(std::min(name.size(), name.find('_') + 1)), &tag) ||
      name != WorkspaceTagName(tag) || message.dims_size() != 1 ||
      message.type() != v1::DATA_TYPE_U8) {
    return absl::InvalidArgumentError(
        absl::StrCat("the workspace is not one that Create named: its tag is ", Quoted(name)));
  }
  return MemoryDesc::CreateWorkspace(message.dims(0), tag);
}

v1::MemoryDesc EncodeMemoryDesc(const MemoryDesc& desc) {
  v1::MemoryDesc message;
  for (int64_t dim : desc.dims()) message.add_dims(dim);
  message.set_type(static_cast<v1::DataType>(desc.data_type()));
  if (desc.IsZero()) return message;
  if (desc.format_kind() == FormatKind::kWinograd) {
    const int planes = desc.winograd().planes;
    message.set_tag(absl::StrCat("winograd_", desc.winograd().tile, "x3",
                                 planes > 0 ? absl::StrCat("_planes_", planes) : ""));
    return message;
  }
  if (desc.format_kind() == FormatKind::kPlanes) {
    message.set_tag(absl::StrCat("planes_", desc.planes().planes));
    return message;
  }
  if (desc.format_kind() == FormatKind::kWorkspace) {
    message.set_tag(WorkspaceTagName(desc.workspace_tag()));
    return message;
  }
  const FormatTag tag = desc.IsAny() ? FormatTag::kAny : desc.Tag();
  if (tag != FormatTag::kUndef) {
    message.set_tag(std::string(FormatTagName(tag)));
    return message;
  }
  const std::string pattern = PatternOf(desc);
  const absl::StatusOr<MemoryDesc> again =
      MemoryDesc::CreatePattern(desc.dims(), desc.data_type(), pattern);
  if (again.ok() && *again == desc) {
    message.set_pattern(pattern);
  } else {
    for (int64_t stride : desc.strides()) message.mutable_strides()->add_values(stride);
  }
  return message;
}

}  // namespace tilewire::service
