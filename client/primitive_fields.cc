// SPDX-License-Identifier: Apache-2.0
#include "client/primitive_fields.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/primitive_words.h"

namespace tilewire::client {

void LetChoose(v1::MemoryDesc* desc) {
  if (desc->layout_case() == v1::MemoryDesc::LAYOUT_NOT_SET) desc->set_tag("any");
}

absl::Status FillDst(const PrimitiveText& text, const std::vector<int64_t>& dims, v1::DataType type,
                     v1::MemoryDesc* dst) {
  if (text.dst.empty()) {
    dst->mutable_dims()->Assign(dims.begin(), dims.end());
    dst->set_type(type);
  } else {
    absl::StatusOr<v1::MemoryDesc> given = ParseMemoryDesc(text.dst);
    if (!given.ok()) return given.status();
    *dst = *given;
  }
  LetChoose(dst);
  return absl::OkStatus();
}

absl::Status FillGather(const PrimitiveText& text, const v1::MemoryDesc& src, v1::Gather* op) {
  if (text.indices.empty())
    return absl::InvalidArgumentError("gather needs --indices, for example --indices=s32:3x5");
  const bool has_type = !absl::ascii_isdigit(text.indices[0]);
  const absl::StatusOr<v1::MemoryDesc> indices =
      ParseMemoryDesc(has_type ? text.indices : absl::StrCat("s32:", text.indices));
  if (!indices.ok()) return indices.status();
  if (text.axis < 0 || text.axis >= src.dims_size())
    return Invalid("--axis", absl::StrCat(text.axis),
                   absl::StrCat("in [0, ", src.dims_size(), ")"));
  std::vector<int64_t> dims(src.dims().begin(), src.dims().begin() + text.axis);
  dims.insert(dims.end(), indices->dims().begin(), indices->dims().end());
  dims.insert(dims.end(), src.dims().begin() + text.axis + 1, src.dims().end());
  op->set_axis(text.axis);
  *op->mutable_src() = src;
  *op->mutable_indices() = *indices;
  return FillDst(text, dims, src.type(), op->mutable_dst());
}

}  // namespace tilewire::client
