// SPDX-License-Identifier: Apache-2.0
//
// Inner product (fully connected layer), forward:
//
//   dst[n,oc] = postops(bias[oc] + sum over ic, spatial s of src[n,ic,s] * weights[oc,ic,s])
//
// Shapes   src [N,C] or [N,C,spatial...], weights [O,C] or [O,C,spatial...], bias [O] or the zero
//          descriptor, dst [N,O].
// Types    as convolution's.
// Layouts  Any tensor may be `any`: the primitive chooses.
// Order    The rows of dst do not depend on N.
// Source   tests/engine/rows.txt P05, Q08.
#ifndef ENGINE_PRIMITIVES_INNER_PRODUCT_INNER_PRODUCT_H_
#define ENGINE_PRIMITIVES_INNER_PRODUCT_INNER_PRODUCT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

struct InnerProductDesc {
  PropKind prop_kind = PropKind::kForwardInference;
  MemoryDesc src, weights, bias, dst;
};
TILEWIRE_FIELDS(InnerProductDesc, prop_kind, src, weights, bias, dst);

// Best first; tests and benchmarks run every row.
absl::Span<const Implementation<InnerProductDesc>> InnerProductImplementations();
// Typical descriptors that read `type`: see probes.h.
std::vector<InnerProductDesc> InnerProductProbes(DataType type);

//   kInvalidArgument    shapes that do not fit each other
//   kUnimplemented      no implementation takes it; the message lists why each refused
//   kResourceExhausted  memory
absl::StatusOr<std::shared_ptr<const Primitive>> CreateInnerProduct(const InnerProductDesc& desc,
                                                                    const Attributes& attributes,
                                                                    const CreateOptions& options);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_INNER_PRODUCT_INNER_PRODUCT_H_
