// SPDX-License-Identifier: Apache-2.0
//
// Rewrites of a network before it is lowered to primitives. Each pass keeps the network's meaning
// (up to the rounding of folded factors) and its topological order. No pass touches weights element
// by element. passes.cc lists the passes in the order in which they run, and why.
#ifndef ENGINE_NETWORK_PASSES_PASSES_H_
#define ENGINE_NETWORK_PASSES_PASSES_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/network/network.h"

namespace tilewire::network {

struct Pass {
  absl::string_view name;  // of its file
  void (*run)(Network* network);
  absl::string_view before;  // passes that must come later, with blanks between
  absl::string_view why;     // they must, or why it stands where it stands
};

// All passes, in the order in which they run.
absl::Span<const Pass> PassTable();

// Runs the passes of a table; of this one.
void RunPassesOf(absl::Span<const Pass> table, Network* network);
void RunPasses(Network* network);

// The same for a network for training: the passes that keep parameters and activations apart, so
// that each has a gradient, and leave no operation but those that have one.
absl::Span<const Pass> TrainingPassTable();
void RunTrainingPasses(Network* network);

// Explicit padding before a convolution or pooling becomes the padding of its window: zeros before
// a convolution or an average, minus infinity before a maximum.
void FoldPad(Network* network);

// x / 2 * (1 + erf(x / sqrt(2))) becomes one activation.
void FuseGelu(Network* network);

// The form in which exporters spell out a layer normalization becomes one operation, with its scale
// and shift.
void FuseLayerNormalization(Network* network);

// Products, a softmax and the product with it become attention, with scales and masks between them.
void FuseAttention(Network* network);

// A Dequantize of bytes as they are and the factors, divisors, differences and sums after it, of
// one number or of one per channel, become one operation; transposes between them stay.
void FuseImageScaling(Network* network);

// A sum of an inner product and one constant per output becomes the inner product's bias. Reshapes
// between the two may change all dimensions but the last.
void FuseBias(Network* network);

// Inner products on the pixels of a channels-last tensor, and the activations between them, become
// 1x1 convolutions if a transpose to channels-first follows; the transpose moves before them.
void ConvolveRows(Network* network);

// A depthwise convolution of one element (a batch normalization, or a product or sum per channel)
// is folded into the scale and bias of the convolution or inner product before it, if nothing else
// reads that one's result.
void FoldScaleShift(Network* network);

// A Quantize, or a Relu and a Quantize, of a concatenation that nothing else reads moves to each of
// the concatenation's sources.
void LiftQuantize(Network* network);

// Operations that only move or compare elements run on the integers before a Dequantize, and its
// scale takes positive factors after it. A Quantize back to those integers disappears, and so does
// a second Quantize of the same numbers.
void SinkDequantize(Network* network);

// A convolution of what a DynamicQuantize gives, less its zero point and times its scale, becomes
// one operation.
void FuseDynamicQuantization(Network* network);

// A convolution or inner product of dequantized integers with s8 weights reads the integers; so
// does a product of two dequantized matrices.
void FoldDequantize(Network* network);

// A reshape of a reshape reads the first one's source; a reshape to the same dims disappears.
void CollapseReshapes(Network* network);

// Truth values that only other truth values, choices and conversions are made of become bytes.
void NarrowTruths(Network* network);

// A conversion of what another one made reads the first one's source, by way of the types between
// that change a number: cuts to integers and truth values count as conversions.
void CollapseConverts(Network* network);

// A reshape that splits the channels in two, a transpose that swaps the two, and a reshape back
// become a shuffle.
void FuseShuffle(Network* network);

// A shuffle of a concatenation, and a selection of channels after a shuffle, gather their channels
// from the tensors in which these were computed.
void FuseGatherChannels(Network* network);

// A concatenation whose first sources are those of an earlier one takes the earlier one's result:
// [a,b], [a,b,c], ... share one buffer.
void NestConcats(Network* network);

// A reshape of [N,C,spatial...] to [N,C*spatial] before an inner product disappears: the inner
// product reads the reshape's source.
void FoldFlatten(Network* network);

// min(max(x + 3, 0), 6) / 6 becomes hard_sigmoid, and x times it hard_swish; likewise for other
// slopes.
void FuseHardSigmoid(Network* network);

// x * hard_sigmoid(x) and x * logistic(x) become one activation each.
void FuseSwish(Network* network);

// Activations and sums after a convolution or inner product become its fused steps; an activation
// also after a reshape of its result.
void FusePostOps(Network* network);

// The inner products of a squeeze-and-excite gate become 1x1 convolutions, and the reshape of their
// result to one pixel per channel disappears, so that no tensor leaves the layout of the channels.
void ConvolveGates(Network* network);

// A 2x2 maximum of stride 2 after a convolution of real numbers, and after its fused steps if these
// contain no sum, becomes the convolution's pooling.
void FusePooling(Network* network);

// A Quantize of the result of a convolution, inner product or matrix product of integers becomes
// its dst_quantization; the scale of a matrix product takes a positive factor before it.
void FoldQuantize(Network* network);

// A Quantize of dequantized integers, of their sum, or of a Relu of either becomes one operation.
void FoldIntegerSum(Network* network);

// Operations whose result nothing uses, then values that nothing names, disappear.
void RemoveDead(Network* network);

}  // namespace tilewire::network

#endif  // ENGINE_NETWORK_PASSES_PASSES_H_
