// SPDX-License-Identifier: Apache-2.0
#include "client/primitive_fields.h"

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

}  // namespace tilewire::client
