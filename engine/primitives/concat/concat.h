// SPDX-License-Identifier: Apache-2.0
//
// Concatenation along one axis, in the order of the sources.
//
// Arguments kArgMultipleSrc + i, kArgDst.
// Layouts   any; dst may be `any`: the layout of srcs[0].
// Source    tests/engine/rows.txt P12.
#ifndef ENGINE_PRIMITIVES_CONCAT_CONCAT_H_
#define ENGINE_PRIMITIVES_CONCAT_CONCAT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

struct ConcatDesc {
  int axis = 1;
  std::vector<MemoryDesc> srcs;
  MemoryDesc dst;
};
TILEWIRE_FIELDS(ConcatDesc, axis, srcs, dst);

// Best first; tests and benchmarks run every row.
absl::Span<const Implementation<ConcatDesc>> ConcatImplementations();
// Typical descriptors that read `type`: see probes.h.
std::vector<ConcatDesc> ConcatProbes(DataType type);

//   kInvalidArgument    no source, an axis outside the rank, sizes off the axis that differ, types
//                       that differ
//   kUnimplemented      no implementation takes it; the message lists why each refused
//   kResourceExhausted  memory
absl::StatusOr<std::shared_ptr<const Primitive>> CreateConcat(const ConcatDesc& desc,
                                                              const Attributes& attributes,
                                                              const CreateOptions& options);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_CONCAT_CONCAT_H_
