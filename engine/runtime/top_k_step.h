// SPDX-License-Identifier: Apache-2.0
//
// A step of a plan that picks the best elements along one axis (graph::TopK). f32, any layout on
// both sides; the padded tail of dst is written with zeros. Arguments kArgSrc, kArgDst.
#ifndef ENGINE_RUNTIME_TOP_K_STEP_H_
#define ENGINE_RUNTIME_TOP_K_STEP_H_

#include <memory>

#include "absl/status/statusor.h"
#include "engine/graph/network.h"
#include "engine/primitives/primitive.h"

namespace tilewire::runtime {

//   kUnimplemented  another type, or a dimension of more than 2^24
absl::StatusOr<std::shared_ptr<const Primitive>> CreateTopKStep(const graph::TopK& top,
                                                                const MemoryDesc& src,
                                                                const MemoryDesc& dst);

}  // namespace tilewire::runtime

#endif  // ENGINE_RUNTIME_TOP_K_STEP_H_
