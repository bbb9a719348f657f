// SPDX-License-Identifier: Apache-2.0
//
// Tensors that the tests of reorders share.
#ifndef TESTS_ENGINE_PRIMITIVES_REORDER_REORDER_TENSORS_H_
#define TESTS_ENGINE_PRIMITIVES_REORDER_REORDER_TENSORS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/memory/format_tag.h"
#include "engine/memory/memory_desc.h"
#include "tests/support/random_tensor.h"

namespace tilewire::testing {

using Bytes = std::vector<uint8_t>;

// The tensor in the layout that `tag` names; fails the process if there is none.
inline MemoryDesc Make(Dims dims, absl::string_view tag, DataType type = DataType::kF32) {
  return *MemoryDesc::Create(std::move(dims), type, *ParseFormatTag(tag));
}

// Any bytes, in the padding too.
inline Bytes Garbage(const MemoryDesc& desc, uint64_t seed) {
  Bytes bytes(desc.SizeBytes());
  FillGarbage(bytes.data(), bytes.size(), seed);
  return bytes;
}

}  // namespace tilewire::testing

#endif  // TESTS_ENGINE_PRIMITIVES_REORDER_REORDER_TENSORS_H_
