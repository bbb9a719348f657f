// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of table.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_LAYER_NORMALIZATION_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_LAYER_NORMALIZATION_IMPLEMENTATIONS_H_

#include <vector>

#include "engine/primitives/layer_normalization/layer_normalization.h"

namespace tilewire::layer_normalization {

// Layer normalization of rows that lie densely in memory, shared by avx512_f32 and avx2_f32. The
// generated code passes three times over a row, for the mean (and the sum with the addend), for the
// variance and for the result, with a vector's lanes times four vectors of partial sums, so that
// the order of addition depends on the length of a row alone.
TILEWIRE_ROW(LayerNormalizationDesc, Rows);

TILEWIRE_ROW(LayerNormalizationDesc, Reference);

TILEWIRE_ROW(LayerNormalizationDesc, ReferenceBackward);

PrimitiveInfo InfoOf(const Request<LayerNormalizationDesc>& request);

// Training writes the statistics that it finds.
inline bool WritesStatistics(const LayerNormalizationDesc& desc) {
  return desc.prop_kind == PropKind::kForwardTraining && !desc.use_global_stats;
}

// The arguments that forward and backward share: statistics, as outputs where the propagation
// writes them, and scale and shift.
std::vector<ArgDesc> ParameterArgs(const LayerNormalizationDesc& desc);

inline bool HasAddend(const LayerNormalizationDesc& desc) { return !desc.addend.IsZero(); }

// The product of all dimensions but the last.
int64_t RowsOf(const LayerNormalizationDesc& desc);

}  // namespace tilewire::layer_normalization

#endif  // ENGINE_PRIMITIVES_LAYER_NORMALIZATION_IMPLEMENTATIONS_H_
