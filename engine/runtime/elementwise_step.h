// SPDX-License-Identifier: Apache-2.0
//
// Steps of a plan that compute where no primitive does, in plain loops: functions of up to three
// broadcast tensors (graph::Elementwise), reductions (graph::Reduce) and weighted sums along one
// dimension (graph::Interpolate). f32, any layout on every side, but for Interpolate: dense, nested
// alike, and not blocked along its dimension. The padded tail of dst is written with zeros. Every
// element of dst is computed by itself, in an order that its dims alone decide. Arguments
// kArgMultipleSrc + i (Elementwise) or kArgSrc, kArgDst.
#ifndef ENGINE_RUNTIME_ELEMENTWISE_STEP_H_
#define ENGINE_RUNTIME_ELEMENTWISE_STEP_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/graph/network.h"
#include "engine/primitives/primitive.h"

namespace tilewire::runtime {

// All:
//   kUnimplemented  another type, or a dimension of more than 2^24
// `srcs` have dst's rank and along every dimension its size or 1.
absl::StatusOr<std::shared_ptr<const Primitive>> CreateElementwiseStep(
    const graph::Elementwise& elementwise, const std::vector<MemoryDesc>& srcs,
    const MemoryDesc& dst);
absl::StatusOr<std::shared_ptr<const Primitive>> CreateReduceStep(const graph::Reduce& reduce,
                                                                  const MemoryDesc& src,
                                                                  const MemoryDesc& dst);
absl::StatusOr<std::shared_ptr<const Primitive>> CreateInterpolateStep(
    const graph::Interpolate& interpolate, const MemoryDesc& src, const MemoryDesc& dst);

}  // namespace tilewire::runtime

#endif  // ENGINE_RUNTIME_ELEMENTWISE_STEP_H_
