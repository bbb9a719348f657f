// SPDX-License-Identifier: Apache-2.0
//
// The rows for tensors whose pixels are neighbours (nchw), of any type that pooling takes. A row of
// src is widened to 32 bits and padded with what changes no result; generated code combines it with
// the row of windows it belongs to, one vector of windows at a time.
#ifndef ENGINE_PRIMITIVES_POOLING_PLAIN_ROWS_H_
#define ENGINE_PRIMITIVES_POOLING_PLAIN_ROWS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/jit/vector_unit.h"
#include "engine/primitives/pooling/pooling.h"

namespace tilewire::pooling {

// kUnimplemented with the reason.
absl::StatusOr<PoolingDesc> ResolvePlainRows(const PoolingDesc& desc, const Attributes& attributes,
                                             const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreatePlainRows(const PoolingDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts);

}  // namespace tilewire::pooling

#endif  // ENGINE_PRIMITIVES_POOLING_PLAIN_ROWS_H_
