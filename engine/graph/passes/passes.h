// SPDX-License-Identifier: Apache-2.0
//
// What is done to a network between lowering and the runtime. Each pass keeps the network's meaning
// (up to the rounding of folded factors) and its topological order, and costs little: no pass
// touches weights element by element.
#ifndef ENGINE_GRAPH_PASSES_PASSES_H_
#define ENGINE_GRAPH_PASSES_PASSES_H_

#include "engine/graph/network.h"

namespace tilewire::graph {

// Zeros around the spatial dimensions before a convolution or an average, minus infinity before a
// maximum, become the padding of its window.
void FoldPad(Network* network);

// x / 2 * (1 + erf(x / sqrt(2))) becomes one elementwise function.
void FuseGelu(Network* network);

// What exporters make of a layer normalization becomes one operation, with its scale and shift.
void FuseLayerNormalization(Network* network);

// A sum with one known number an output behind an inner product, and behind reshapes that keep its
// rows, becomes its bias.
void FuseBias(Network* network);

// Inner products of the pixels of a tensor with the channels last (and what is elementwise between
// them), behind which the channels are brought to the front, become 1x1 convolutions behind that
// transpose.
void ConvolveRows(Network* network);

// A depthwise convolution of one element (a batch normalisation, or a product or sum per channel)
// behind a convolution or inner product whose result only it uses: folded into that one's scale and
// bias.
void FoldScaleShift(Network* network);

// A Quantize, or a Relu and a Quantize, behind a concatenation that nobody else reads: done for each
// of its sources.
void LiftQuantize(Network* network);

// What only moves or compares elements runs on the integers before a Dequantize; a Quantize back to
// them disappears, and so does one of the same numbers as another.
void SinkDequantize(Network* network);

// A convolution or inner product of dequantised integers with s8 weights reads the integers.
void FoldDequantize(Network* network);

// min(max(x + 3, 0), 6) / 6 becomes hard_sigmoid, x times it hard_swish; likewise other slopes.
void FuseHardSigmoid(Network* network);

// x * hard_sigmoid(x) and x * logistic(x) become one elementwise function.
void FuseSwish(Network* network);

// A reshape of a reshape reads the first one's source; a reshape to the dims it comes from
// disappears.
void CollapseReshapes(Network* network);

// Reshape that splits the channels in two, transpose that swaps the two, reshape back: a shuffle.
void FuseShuffle(Network* network);

// A shuffle of a concatenation, and a selection of channels behind a shuffle, gather their channels
// from where these were computed.
void FuseGatherChannels(Network* network);

// A concatenation whose first sources are those of an earlier one takes the result of that instead:
// [a,b], [a,b,c], ... lie in each other.
void NestConcats(Network* network);

// A reshape of [N,C,spatial...] to [N,C*spatial] before an inner product disappears: it reads its
// source directly.
void FoldFlatten(Network* network);

// Elementwise functions and sums behind a convolution or inner product become its fused steps; a
// function also behind a reshape of its result.
void FusePostOps(Network* network);

// Squeeze and excite with inner products: those between an average over all pixels and the reshape
// to one pixel again, by which the channels are multiplied, become 1x1 convolutions, and the
// reshape disappears. Nothing leaves the layout of the channels.
void ConvolveGates(Network* network);

// A 2x2 maximum of stride 2 behind a convolution of real numbers, and behind its fused steps, if no
// sum is among them, becomes its pooling.
void FusePooling(Network* network);

// A Quantize behind a convolution or inner product of integers becomes the grid of its result.
void FoldQuantize(Network* network);

// A Quantize of dequantised integers, of their sum, or of what a Relu leaves of either: one step.
void FoldIntegerSum(Network* network);

// Operations whose result nobody uses, then values that nothing names, disappear.
void RemoveDead(Network* network);

// All of them, in the order above.
void RunPasses(Network* network);

}  // namespace tilewire::graph

#endif  // ENGINE_GRAPH_PASSES_PASSES_H_
