// SPDX-License-Identifier: Apache-2.0
//
// From a plain tensor to one whose innermost block holds channels of one dimension, the lanes, in
// which src is not dense: weights as models store them (oihw, goihw) to the blocks of convolutions
// (OIhw16i16o, Ohwi16o, Goihw16g) and inner products. The other dimensions, as far as src holds
// them dense, make up a run of elements; a kernel of channel_blocking_generator.h takes a tile of
// one register's lanes times as many elements, transposes it in registers and stores each row, the
// lanes of one element, at the place that a table names. Elements of four bytes that are moved as
// they are.
#ifndef ENGINE_PRIMITIVES_REORDER_WEIGHTS_PACKING_H_
#define ENGINE_PRIMITIVES_REORDER_WEIGHTS_PACKING_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/primitives/reorder/channel_blocking.h"

namespace tilewire::reorder {

// The innermost block has the lanes of a register. kUnimplemented with the reason.
absl::StatusOr<ReorderDesc> ResolveWeightsPacking(const ReorderDesc& desc,
                                                  const Attributes& attributes,
                                                  const ImplementationFacts& facts);

// From what ResolveWeightsPacking() returned. kResourceExhausted.
absl::StatusOr<std::unique_ptr<Primitive>> CreateWeightsPacking(const ReorderDesc& desc,
                                                                const Attributes& attributes,
                                                                const ImplementationFacts& facts);

}  // namespace tilewire::reorder

#endif  // ENGINE_PRIMITIVES_REORDER_WEIGHTS_PACKING_H_
