// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of layer_normalization.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_LAYER_NORMALIZATION_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_LAYER_NORMALIZATION_IMPLEMENTATIONS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/primitives/layer_normalization/layer_normalization.h"

namespace tilewire::layer_normalization {

absl::StatusOr<LayerNormalizationDesc> ResolveRows(const LayerNormalizationDesc& desc,
                                                   const Attributes& attributes,
                                                   const ImplementationFacts& facts);
absl::StatusOr<LayerNormalizationDesc> ResolveReference(const LayerNormalizationDesc& desc,
                                                        const Attributes& attributes,
                                                        const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const LayerNormalizationDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts);

PrimitiveInfo InfoOf(const LayerNormalizationDesc& desc, const Attributes& attributes,
                     const ImplementationFacts& facts);

// Of all dimensions but the last.
int64_t RowsOf(const LayerNormalizationDesc& desc);

}  // namespace tilewire::layer_normalization

#endif  // ENGINE_PRIMITIVES_LAYER_NORMALIZATION_IMPLEMENTATIONS_H_
