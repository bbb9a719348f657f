// SPDX-License-Identifier: Apache-2.0
//
// A step of a plan that takes what computed indices name (graph::Gather):
//
//   dst[i..., j..., k...] = src[i..., at(indices[j...]), k...]
//
// where at() cuts an index towards zero and counts a negative one from the end. src of any type,
// indices f32, everything row-major. Arguments kArgSrc, kArgSrc1 (the indices), kArgDst. Its
// SourceCheck refuses indices outside the source's dimension, and such that are not numbers.
#ifndef ENGINE_RUNTIME_GATHER_STEP_H_
#define ENGINE_RUNTIME_GATHER_STEP_H_

#include <memory>

#include "absl/status/statusor.h"
#include "engine/graph/network.h"
#include "engine/primitives/primitive.h"

namespace tilewire::runtime {

//   kUnimplemented  indices of another type
absl::StatusOr<std::shared_ptr<const Primitive>> CreateGatherStep(const graph::Gather& gather,
                                                                  const MemoryDesc& src,
                                                                  const MemoryDesc& indices,
                                                                  const MemoryDesc& dst);

}  // namespace tilewire::runtime

#endif  // ENGINE_RUNTIME_GATHER_STEP_H_
