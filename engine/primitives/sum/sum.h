// SPDX-License-Identifier: Apache-2.0
//
// Sum of tensors of one shape and type:
//
//   dst = sum_i scales[i] * srcs[i]
//
// added in the order of i, in f32, with one rounding per product and per sum. An integer dst is
// rounded to nearest even and saturated, and NaN becomes 0. dst may be srcs[0].
//
// Arguments kArgMultipleSrc + i, kArgDst.
// Layouts   any; dst may be `any`: the layout of srcs[0].
// Source    tests/engine/rows.txt P11.
#ifndef ENGINE_PRIMITIVES_SUM_SUM_H_
#define ENGINE_PRIMITIVES_SUM_SUM_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

struct SumDesc {
  std::vector<float> scales;  // one per source
  std::vector<MemoryDesc> srcs;
  MemoryDesc dst;
};
TILEWIRE_FIELDS(SumDesc, scales, srcs, dst);

// Best first; tests and benchmarks run every row.
absl::Span<const Implementation<SumDesc>> SumImplementations();
// Typical descriptors that read `type`: see probes.h.
std::vector<SumDesc> SumProbes(DataType type);

//   kInvalidArgument    no source, shapes or types that differ, another number of scales
//   kUnimplemented      no implementation takes it; the message lists why each refused
//   kResourceExhausted  memory
absl::StatusOr<std::shared_ptr<const Primitive>> CreateSum(const SumDesc& desc,
                                                           const Attributes& attributes,
                                                           const CreateOptions& options);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_SUM_SUM_H_
