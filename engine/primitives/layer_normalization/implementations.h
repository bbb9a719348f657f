// SPDX-License-Identifier: Apache-2.0
//
// What each row of the table consists of; layer_normalization.cc lists the rows. See
// implementation.h for resolve and create.
#ifndef ENGINE_PRIMITIVES_LAYER_NORMALIZATION_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_LAYER_NORMALIZATION_IMPLEMENTATIONS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/primitives/layer_normalization/layer_normalization.h"

namespace tilewire::layer_normalization {

absl::StatusOr<LayerNormalizationDesc> ResolveRows(const LayerNormalizationDesc& desc,
                                                   const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512F32(const LayerNormalizationDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2F32(const LayerNormalizationDesc& desc,
                                                         const Attributes& attributes,
                                                         absl::string_view name);

absl::StatusOr<LayerNormalizationDesc> ResolveReference(const LayerNormalizationDesc& desc,
                                                        const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const LayerNormalizationDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name);

PrimitiveInfo InfoOf(const LayerNormalizationDesc& desc, const Attributes& attributes,
                     absl::string_view name);

// Of all dimensions but the last.
int64_t RowsOf(const LayerNormalizationDesc& desc);

}  // namespace tilewire::layer_normalization

#endif  // ENGINE_PRIMITIVES_LAYER_NORMALIZATION_IMPLEMENTATIONS_H_
