// SPDX-License-Identifier: Apache-2.0
//
// Function of each element: dst[i] = f(src[i]), with the formulas of engine/jit/eltwise.h. May run
// in place (dst == src). The padded tail of dst stays zero even where f(0) is not.
//
// Types    src and dst have one type. f is computed in f32; the result of an integer type is
//          rounded to nearest even and saturated, and NaN becomes 0.
// Layouts  any; dst may be `any`: the layout of src.
// Source   tests/engine/rows.txt P07, Z05.
#ifndef ENGINE_PRIMITIVES_ELTWISE_ELTWISE_H_
#define ENGINE_PRIMITIVES_ELTWISE_ELTWISE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

namespace jit {
TILEWIRE_FIELDS(EltwiseOp, algorithm, alpha, beta);
}  // namespace jit

struct EltwiseDesc {
  PropKind prop_kind = PropKind::kForwardInference;
  EltwiseOp op;
  MemoryDesc src, dst;
};
TILEWIRE_FIELDS(EltwiseDesc, prop_kind, op, src, dst);

// Best first; tests and benchmarks run every row.
absl::Span<const Implementation<EltwiseDesc>> EltwiseImplementations();
// Typical descriptors that read `type`: see probes.h.
std::vector<EltwiseDesc> EltwiseProbes(DataType type);

//   kInvalidArgument    src and dst differ in shape
//   kUnimplemented      no implementation takes it; the message lists why each refused
//   kResourceExhausted  memory
absl::StatusOr<std::shared_ptr<const Primitive>> CreateEltwise(const EltwiseDesc& desc,
                                                               const Attributes& attributes,
                                                               const CreateOptions& options);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_ELTWISE_ELTWISE_H_
