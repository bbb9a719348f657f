// SPDX-License-Identifier: Apache-2.0
//
// The step of graph::IntegerSum: 8-bit integers of several grids to the sum of what they stand for,
//
//   real  = sum over i of (src[i] - zero_point[i]) * scale[i], or 0 where relu and that is below 0
//   dst   = saturate(round(real / scale) + zero_point)      halves to the even one
//
// in f32 and in this order, so that it gives the bits of the operations that it stands for. By
// generated code where there are vectors, else a loop. All tensors in one dense layout without
// padding. Arguments kArgMultipleSrc + i, kArgDst.
#ifndef ENGINE_RUNTIME_INTEGER_SUM_STEP_H_
#define ENGINE_RUNTIME_INTEGER_SUM_STEP_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/cpu/isa.h"
#include "engine/graph/network.h"
#include "engine/primitives/primitive.h"

namespace tilewire::runtime {

// No instruction set above `max_isa` is used.
//   kUnimplemented      another type, or layouts that differ or have gaps
//   kResourceExhausted  code pages
absl::StatusOr<std::shared_ptr<const Primitive>> CreateIntegerSumStep(
    const graph::IntegerSum& sum, const std::vector<MemoryDesc>& srcs, const MemoryDesc& dst,
    cpu::Isa max_isa);

}  // namespace tilewire::runtime

#endif  // ENGINE_RUNTIME_INTEGER_SUM_STEP_H_
