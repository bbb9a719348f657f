// SPDX-License-Identifier: Apache-2.0
//
// winograd_weights.cc's transform by generated code, for weights that src holds as oihw: the same
// arithmetic in the same order, and so the same bits. A block of output channels and as many input
// channels are transposed to [input channel][tap][output channel] by a kernel of
// channel_blocking_generator.h; a second kernel transforms one input channel after the other.
#ifndef ENGINE_PRIMITIVES_REORDER_GENERATED_WINOGRAD_WEIGHTS_H_
#define ENGINE_PRIMITIVES_REORDER_GENERATED_WINOGRAD_WEIGHTS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/cpu/isa.h"
#include "engine/primitives/reorder/implementations.h"

namespace tilewire::reorder {

// kUnimplemented with the reason.
absl::StatusOr<ReorderDesc> ResolveGeneratedWinograd(const ReorderDesc& desc,
                                                     const Attributes& attributes,
                                                     const ImplementationFacts& facts);

// From what ResolveGeneratedWinograd() returned. kResourceExhausted.
absl::StatusOr<std::unique_ptr<Primitive>> CreateGeneratedWinograd(
    const ReorderDesc& desc, const Attributes& attributes, const ImplementationFacts& facts);

}  // namespace tilewire::reorder

#endif  // ENGINE_PRIMITIVES_REORDER_GENERATED_WINOGRAD_WEIGHTS_H_
