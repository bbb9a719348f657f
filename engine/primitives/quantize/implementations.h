// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of quantize.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_QUANTIZE_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_QUANTIZE_IMPLEMENTATIONS_H_

#include "engine/primitives/quantize/quantize.h"

namespace tilewire::quantize {

absl::StatusOr<QuantizeDesc> ResolveRows(const QuantizeDesc& desc, const Attributes& attributes,
                                         const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateRows(const QuantizeDesc& desc,
                                                      const Attributes& attributes,
                                                      const ImplementationFacts& facts);

absl::StatusOr<QuantizeDesc> ResolveReference(const QuantizeDesc& desc,
                                              const Attributes& attributes,
                                              const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const QuantizeDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts);

}  // namespace tilewire::quantize

#endif  // ENGINE_PRIMITIVES_QUANTIZE_IMPLEMENTATIONS_H_
