// SPDX-License-Identifier: Apache-2.0
#include "client/primitive_text.h"

#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/primitive_words.h"

namespace tilewire::client {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 30;

}  // namespace

absl::StatusOr<std::vector<int64_t>> ParseDims(absl::string_view text) {
  std::vector<int64_t> dims;
  int64_t elements = 1;
  for (absl::string_view part : absl::StrSplit(text, 'x')) {
    int64_t size = 0;
    if (!absl::SimpleAtoi(part, &size) || size < 0 || size > kMaxElements ||
        (size > 1 && elements > kMaxElements / size)) {
      return Invalid("dims", text,
                     "sizes joined by x, such as 1x64x56x56, of at most 2^30 elements");
    }
    if (size > 1) elements *= size;
    dims.push_back(size);
  }
  return dims;
}

absl::StatusOr<v1::MemoryDesc> ParseMemoryDesc(absl::string_view text) {
  std::vector<std::string> parts = absl::StrSplit(text, ':');
  v1::MemoryDesc desc;
  desc.set_type(v1::DATA_TYPE_F32);
  if (!parts.front().empty() && !absl::ascii_isdigit(parts.front()[0])) {
    auto type = ParseEnum<v1::DataType>("data type", "DATA_TYPE_", parts.front());
    if (!type.ok()) return type.status();
    desc.set_type(*type);
    parts.erase(parts.begin());
  }
  if (parts.empty() || parts.size() > 2)
    return Invalid("tensor", text, "[type:]dims[:tag], such as 1x64x56x56:nhwc");
  absl::StatusOr<std::vector<int64_t>> dims = ParseDims(parts[0]);
  if (!dims.ok()) return dims.status();
  desc.mutable_dims()->Assign(dims->begin(), dims->end());
  if (parts.size() == 2) desc.set_tag(parts[1]);
  return desc;
}

std::string ToText(const v1::MemoryDesc& desc) {
  std::string layout = "plain";
  if (desc.has_tag()) layout = desc.tag();
  if (desc.has_pattern()) layout = desc.pattern();
  if (desc.has_strides())
    layout = absl::StrCat("strides ", absl::StrJoin(desc.strides().values(), "x"));
  const std::string type =
      absl::AsciiStrToLower(v1::DataType_Name(desc.type()).substr(std::strlen("DATA_TYPE_")));
  return absl::StrCat(type, ":", absl::StrJoin(desc.dims(), "x"), ":", layout);
}

}  // namespace tilewire::client
