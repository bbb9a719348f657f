// SPDX-License-Identifier: Apache-2.0
//
// A step of a plan that finds the greatest element of each window (graph::MaxWindow), by a loop:
// the element, or its index in f32. f32, row-major, up to three spatial dimensions. Arguments
// kArgSrc, kArgDst.
#ifndef ENGINE_RUNTIME_MAX_WINDOW_STEP_H_
#define ENGINE_RUNTIME_MAX_WINDOW_STEP_H_

#include <memory>

#include "absl/status/statusor.h"
#include "engine/graph/network.h"
#include "engine/primitives/primitive.h"

namespace tilewire::runtime {

//   kUnimplemented  another type, a dimension of more than 2^24, more spatial dimensions
absl::StatusOr<std::shared_ptr<const Primitive>> CreateMaxWindowStep(const graph::MaxWindow& window,
                                                                     const MemoryDesc& src,
                                                                     const MemoryDesc& dst);

}  // namespace tilewire::runtime

#endif  // ENGINE_RUNTIME_MAX_WINDOW_STEP_H_
