// SPDX-License-Identifier: Apache-2.0
//
// A layer of a recurrent network, forward inference. The cell (engine/functions/rnn_cell.h has the
// formulas) passes over the T steps of each sequence, from the state src_iter (or zeros) on:
//
//   (h, c) = cell(src_layer[t,n,:], h, c),  dst_layer[t,n,:] = h
//
// from the first step to the last, or back (right2left), or both: one direction with weights of
// its own each, whose results stand side by side or are added. The state after the last step is
// dst_iter.
//
// Shapes     src_layer [T,N,I], dst_layer [T,N,H], or [T,N,2H] for bidirectional_concat.
//            src_iter, dst_iter and, for an lstm, src_iter_c, dst_iter_c [L,D,N,H]; each may be the
//            zero descriptor. weights_layer [L,D,I,G,H], weights_iter [L,D,H,G,H]; bias
//            [L,D,G or G + 1,H] or the zero descriptor; L is 1, D the number of directions, G the
//            cell's gates in the order of rnn_cell.h.
// Arguments  kArgSrc, kArgSrcIter, kArgSrcIterC, kArgWeights, kArgWeightsIter, kArgBias, kArgDst,
//            kArgDstIter, kArgDstIterC, and the two below.
// Beyond     weights_peephole [L,D,3,H], for an lstm: i and f see c, o sees c', each element times
// MKL-DNN    a weight of its own, before the function. sequence_lengths [N] of s32: a sequence ends
//            after so many steps; dst_layer is zero from there on, and right2left begins at its own
//            last step. clip > 0 bounds the sum of every gate, before its function, to
//            [-clip, clip]. couples_gates, for an lstm: f = 1 - i.
// Layouts    any; `any` (not of src_layer) is row-major (tnc, ldnc, ldigo, ldgo) for the reference.
//            ntc and ldgoi are the same tensors with other strides.
// Types      f32; sequence_lengths s32.
// Threads    immutable; see primitive.h.
// Wire       functions that have code, as eltwise.
// Order      The state of one sequence does not depend on the other sequences.
// Source     MKL-DNN 1.0, "RNN"; oneDNN for the peephole; ONNX for the other three.
#ifndef ENGINE_PRIMITIVES_RNN_RNN_H_
#define ENGINE_PRIMITIVES_RNN_RNN_H_

#include <vector>

#include "engine/functions/rnn_cell.h"
#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

using functions::RnnActivation;
using functions::RnnCell;
using functions::RnnDirection;

struct RnnDesc {
  PropKind prop_kind = PropKind::kForwardInference;
  RnnCell cell = RnnCell::kLstm;
  RnnDirection direction = RnnDirection::kLeftToRight;
  // f, g and h as far as the cell has them; of the first direction, then of the second.
  std::vector<RnnActivation> activations;
  float clip = 0;
  bool couples_gates = false;
  MemoryDesc src_layer, src_iter, src_iter_c;
  MemoryDesc weights_layer, weights_iter, weights_peephole, bias;
  MemoryDesc sequence_lengths;
  MemoryDesc dst_layer, dst_iter, dst_iter_c;
};
TILEWIRE_FIELDS(RnnDesc, prop_kind, cell, direction, activations, clip, couples_gates, src_layer,
                src_iter, src_iter_c, weights_layer, weights_iter, weights_peephole, bias,
                sequence_lengths, dst_layer, dst_iter, dst_iter_c);

//   kInvalidArgument  shapes that do not fit each other, another number of activations than
//                     D times the cell's, a function that has no generated code, a clip that is
//                     negative, denormal or not finite, what an lstm alone has; when executed, a
//                     sequence length outside [0,T]
//   kUnimplemented    more than one layer (L)
TILEWIRE_PRIMITIVE_FUNCTIONS(Rnn);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_RNN_RNN_H_
