// SPDX-License-Identifier: Apache-2.0
//
// Rows of tensors, numbered in row-major order over all dimensions but the last, whose elements
// follow each other. Pure; thread-safe.
#ifndef ENGINE_PRIMITIVES_LAYER_NORMALIZATION_DENSE_ROWS_H_
#define ENGINE_PRIMITIVES_LAYER_NORMALIZATION_DENSE_ROWS_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/memory/memory_desc.h"

namespace tilewire::layer_normalization {

// Zero descriptors are left out.
//   kUnimplemented  elements of a row that do not follow each other; rows of none or of too many
absl::Status RequireDenseRows(absl::Span<const MemoryDesc* const> tensors);

// Bytes from a row to the next; nullopt where rows are at several distances, or further apart than
// generated code adds.
std::optional<int64_t> RowStepOf(const MemoryDesc& md);

// The offset of the first element of a row.
int64_t RowOffset(const MemoryDesc& md, int64_t row);

}  // namespace tilewire::layer_normalization

#endif  // ENGINE_PRIMITIVES_LAYER_NORMALIZATION_DENSE_ROWS_H_
