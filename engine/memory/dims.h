// SPDX-License-Identifier: Apache-2.0
//
// Sizes, strides and indices of a tensor, outermost first in logical order (N, C, D, H, W; G, O, I,
// ...).
#ifndef ENGINE_MEMORY_DIMS_H_
#define ENGINE_MEMORY_DIMS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/checked_math.h"

namespace tilewire {

constexpr int kMaxRank = 12;

using Dims = absl::InlinedVector<int64_t, 6>;

// The product of `dims`, 1 for rank 0; nullopt when it overflows.
inline std::optional<int64_t> ElementCount(const Dims& dims) { return CheckedProduct(dims); }

// "[1,3,224,224]"
inline std::string DimsToString(const Dims& dims) {
  return absl::StrCat("[", absl::StrJoin(dims, ","), "]");
}

}  // namespace tilewire

#endif  // ENGINE_MEMORY_DIMS_H_
