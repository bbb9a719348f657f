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

// Backward of the same rows, shared by avx512_f32_backward and avx2_f32_backward: a pass over a row
// for its two means, and one for diff_src, which adds to the gradients of scale and shift. Pieces
// of rows have sums of their own, which are added in the order of the pieces.
TILEWIRE_ROW(LayerNormalizationDesc, RowsBackward);

TILEWIRE_ROW(LayerNormalizationDesc, ReferenceBackward);

PrimitiveInfo InfoOf(const Request<LayerNormalizationDesc>& request);
PrimitiveInfo BackwardInfoOf(const Request<LayerNormalizationDesc>& request);

// Training writes the statistics that it finds.
inline bool WritesStatistics(const LayerNormalizationDesc& desc) {
  return desc.prop_kind == PropKind::kForwardTraining && !desc.use_global_stats;
}

// Backward writes the gradients of scale and shift.
inline bool WritesParameterGradients(const LayerNormalizationDesc& desc) {
  return desc.prop_kind == PropKind::kBackward && desc.use_scale_shift;
}

// The arguments that forward and backward share: statistics, as outputs where the propagation
// writes them, and scale and shift.
std::vector<ArgDesc> ParameterArgs(const LayerNormalizationDesc& desc);

inline bool HasAddend(const LayerNormalizationDesc& desc) { return !desc.addend.IsZero(); }

// The product of all dimensions but the last.
int64_t RowsOf(const LayerNormalizationDesc& desc);

}  // namespace tilewire::layer_normalization

#endif  // ENGINE_PRIMITIVES_LAYER_NORMALIZATION_IMPLEMENTATIONS_H_
