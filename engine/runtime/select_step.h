// SPDX-License-Identifier: Apache-2.0
//
// The step of a plan that moves elements where no primitive does (graph::Select):
//
//   dst[i0, i1, ...] = src[from[0][i0], from[1][i1], ...], or `fill` where one of these is not in
//   the source
//
// f32, u8 or s8, any layout on both sides; the padded tail of dst is written with zeros. Pieces
// that both sides keep together are copied whole. Arguments kArgSrc, kArgDst.
#ifndef ENGINE_RUNTIME_SELECT_STEP_H_
#define ENGINE_RUNTIME_SELECT_STEP_H_

#include <memory>

#include "absl/status/statusor.h"
#include "engine/graph/network.h"
#include "engine/primitives/primitive.h"

namespace tilewire::runtime {

//   kUnimplemented  another type, or a dimension of more than 2^24
absl::StatusOr<std::shared_ptr<const Primitive>> CreateSelectStep(const graph::Select& select,
                                                                  const MemoryDesc& src,
                                                                  const MemoryDesc& dst);

// The part of `src` that `select` takes, if that is one box of neighbouring elements.
// kInvalidArgument: it is not, or it does not end where blocks do.
absl::StatusOr<MemoryDesc> ViewOf(const graph::Select& select, const MemoryDesc& src);

}  // namespace tilewire::runtime

#endif  // ENGINE_RUNTIME_SELECT_STEP_H_
