// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of table.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_RNN_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_RNN_IMPLEMENTATIONS_H_

#include "engine/primitives/rnn/rnn.h"

namespace tilewire::rnn {

// Layers with packed weights, shared by avx512_f32 and avx2_f32: for vectors of 16 states, weights
// are [D][G][H/16][inputs][16], padded with zeros. The inputs of many steps are multiplied at once,
// the states in every step, and generated code computes the cell. Sums are in the order of
// engine/kernels/products/product_tile.h. Threads share out directions and sequences; a run that is
// stopped ends after a step.
//
// Takes elements of src_layer and dst_layer that are neighbours.
TILEWIRE_ROW(RnnDesc, PackedWeights);

TILEWIRE_ROW(RnnDesc, Reference);

// kUnimplemented  types other than f32 (s32 for lengths), post-ops, other than inference: what
//                 every row refuses
absl::Status RequireInferenceF32(const RnnDesc& desc, const Attributes& attributes);

PrimitiveInfo InfoOf(const Request<RnnDesc>& request);

// kInvalidArgument  a sequence length outside [0,T]
absl::Status CheckLengths(const RnnDesc& desc, const ExecuteArgs& args);

// The descriptor's sizes by their names in rnn.h.
struct RnnSizes {
  explicit RnnSizes(const RnnDesc& desc);
  int64_t steps, sequences, inputs, states;
  int directions, gates, bias_gates;
};

// Whether a direction of the layer, 0 or 1, begins at the last step.
inline bool RunsBack(const RnnDesc& desc, int direction) {
  return direction == 1 || desc.direction == RnnDirection::kRightToLeft;
}

}  // namespace tilewire::rnn

#endif  // ENGINE_PRIMITIVES_RNN_IMPLEMENTATIONS_H_
