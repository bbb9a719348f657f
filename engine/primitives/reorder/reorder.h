// SPDX-License-Identifier: Apache-2.0
//
// Reorder: copies a tensor to another layout and type.
//
//   dst = saturate(round(scale * src + sum_scale * dst_before))
//
// in f32 where a conversion or scale is involved, bit-exact copies otherwise: first the product,
// rounded, then the sum, rounded. To an integer the value is rounded to nearest even; what lies
// outside its range, the infinities included, becomes its largest or smallest number, and NaN
// becomes 0. To f16 and bf16 it is rounded to nearest even, infinite where too large; NaN stays NaN
// and becomes quiet. An s32 that f32 cannot hold is rounded to nearest even on its way. The padded
// tail of dst is written with zeros. Scales: Attributes::output_scales (mask over dst's
// dimensions); post-ops: one sum at most. To a bounded dst (memory_desc.h) s8 alone is copied, and
// an execution with elements beyond the bound is kInvalidArgument.
//
// Arguments kArgSrc, kArgDst.
// Layouts   any to any, arbitrary strides included; dst must not overlap itself.
// Source    tests/engine/rows.txt P01, T01-T08.
#ifndef ENGINE_PRIMITIVES_REORDER_REORDER_H_
#define ENGINE_PRIMITIVES_REORDER_REORDER_H_

#include <cstdint>

#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

namespace reorder {
// ImplementationTraits::algorithm, which the reference has not.
enum Algorithm : uint8_t {
  kDense = 1,        // the same layout on both sides
  kChannelBlocking,  // plain images to blocks of channels, and back
  kWeightsPacking,
  kWinogradWeights,
  kBlockedCopy,
  kCompensated,
  kPlaneWeights,
  kBounded
};
}  // namespace reorder

struct ReorderDesc {
  MemoryDesc src, dst;
};
TILEWIRE_FIELDS(ReorderDesc, src, dst);

//   kInvalidArgument  shapes that differ, `any` or zero descriptors, a dst whose elements overlap
TILEWIRE_PRIMITIVE_FUNCTIONS(Reorder);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_REORDER_REORDER_H_
