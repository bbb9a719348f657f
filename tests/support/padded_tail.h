// SPDX-License-Identifier: Apache-2.0
//
// The padded tail of a tensor (engine/memory/zero_padding.h), by a walk over all padded indices.
// Pure function; thread-safe.
#ifndef TESTS_SUPPORT_PADDED_TAIL_H_
#define TESTS_SUPPORT_PADDED_TAIL_H_

#include <cstddef>
#include <cstdint>

#include "engine/memory/memory_desc.h"
#include "engine/memory/separable_offsets.h"

namespace tilewire::testing {

// Whether every byte of the padded tail is zero.
inline bool PaddingIsZero(const MemoryDesc& desc, const void* data) {
  if (!desc.HasPadding() || desc.ElementCount() == 0) return true;
  const auto* bytes = static_cast<const std::byte*>(data);
  const int64_t size = SizeOf(desc.data_type());
  const SeparableOffsets offsets(desc);
  Dims index(desc.rank(), 0);
  for (int64_t i = 0; i < desc.PaddedElementCount(); ++i) {
    bool inside = true;
    for (int d = 0; d < desc.rank(); ++d) inside = inside && index[d] < desc.dim(d);
    for (int64_t b = 0; !inside && b < size; ++b)
      if (bytes[offsets.Offset(index) * size + b] != std::byte{0}) return false;
    for (int d = desc.rank() - 1; d >= 0 && ++index[d] == desc.padded_dims()[d]; --d) index[d] = 0;
  }
  return true;
}

}  // namespace tilewire::testing

#endif  // TESTS_SUPPORT_PADDED_TAIL_H_
