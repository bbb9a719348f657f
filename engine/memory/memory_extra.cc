// SPDX-License-Identifier: Apache-2.0
//
// MemoryExtra: the things that descriptors of weights carry beside their layout.
#include "engine/base/status_macros.h"
#include "engine/memory/memory_desc.h"

namespace tilewire {

absl::StatusOr<MemoryDesc> MemoryDesc::WithCompensation(int mask) const {
  if (format_kind_ != FormatKind::kBlocked || data_type_ != DataType::kS8 || HasCompensation()) {
    return InvalidArgument(ToString(), " cannot carry compensation");
  }
  if (mask < 0 || mask >> rank() != 0) {
    return InvalidArgument("compensation mask ", mask, " names a dimension that ", ToString(),
                           " has not");
  }
  MemoryDesc desc = *this;
  desc.extra_.flags |= MemoryExtra::kCompensationConvS8S8;
  desc.extra_.compensation_mask = mask;
  ABSL_RETURN_IF_ERROR(desc.CheckSize());
  return desc;
}

absl::StatusOr<MemoryDesc> MemoryDesc::WithBound(int bound) const {
  const bool has_elements = format_kind_ == FormatKind::kBlocked || IsAny();
  if (!has_elements || data_type_ != DataType::kS8)
    return InvalidArgument(ToString(), " cannot have a bound");
  if (bound < 1 || bound > 127)
    return InvalidArgument("a bound of ", bound, " for ", ToString(), "; allowed are 1 to 127");
  MemoryDesc desc = *this;
  desc.extra_.flags |= MemoryExtra::kBounded;
  desc.extra_.bound = bound;
  return desc;
}

MemoryDesc MemoryDesc::WithoutBound() const {
  MemoryDesc desc = *this;
  desc.extra_.flags &= ~MemoryExtra::kBounded;
  desc.extra_.bound = 0;
  return desc;
}

MemoryDesc MemoryDesc::WithoutExtra() const {
  MemoryDesc desc = *this;
  desc.extra_ = {};
  return desc;
}

int64_t MemoryDesc::CompensationCount() const {
  int64_t count = HasCompensation() ? 1 : 0;
  for (int d = 0; d < rank(); ++d) {
    if (extra_.compensation_mask >> d & 1) count *= padded_dims_[d];
  }
  return count;
}

}  // namespace tilewire
