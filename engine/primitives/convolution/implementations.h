// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of table.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_IMPLEMENTATIONS_H_

#include "engine/primitives/convolution/convolution.h"

namespace tilewire::convolution {

// The direct f32 convolution: the layouts it wants for the vectors of the row's instruction set,
// and the primitive around DirectDriver.
//
//   src      nChw16c; or plain, any strides (nchw, nhwc), which suits few channels
//   weights  OIhw16i16o, gOIhw16i16o; depthwise Goihw16g; first layer Ohwi16o
//   dst      nChw16c; or nhwc, any strides between pixels, of whole vectors of channels
// and the same with 1 and 3 spatial dimensions; 8 in place of 16 with AVX2. Groups whose channels
// are not a multiple of the lanes are copied to aligned groups in the scratchpad, and their results
// back.
TILEWIRE_ROW(ConvolutionDesc, Direct);
TILEWIRE_COST(ConvolutionDesc, Direct);

// 1 to 4 input channels in one group, read from a plain src as it lies (nchw and nhwc give the same
// bits); weights hold these channels alone: Ohwi16o.
TILEWIRE_ROW(ConvolutionDesc, FirstLayer);

// The same by products of bf16 numbers, two taps of a row at a time: with a stride of 2 and 3 taps
// or more along the width, without depth. src is rounded in the scratchpad; dst f32 nChw16c or bf16
// nChw32c, or nhwc of whole blocks; weights bf16 in AcDb16a2d, through `any` of f32.
// An odd number of taps is followed by one whose weight is 0: a pixel there that is infinite or NaN
// makes NaN of the output.
TILEWIRE_ROW(ConvolutionDesc, Bf16FirstLayer);

// The same on matrix tiles (AMX), for 3 to 8 dense taps along the width and any stride: a row of
// taps is one step, together with as many pixels after it as make up eight, whose weights are 0.
// Weights are bf16 in OIhW8w2i16o2i. An infinity makes NaN of outputs that it is beside.
TILEWIRE_ROW(ConvolutionDesc, Bf16TileFirstLayer);

// src and dst nChw16c; or nhwc, any strides between pixels, with AVX2 of whole vectors of channels.
// With AVX-512 BF16, dst is bf16, nChw32c: what the row of AVX-512 computes, rounded.
TILEWIRE_ROW(ConvolutionDesc, Depthwise);

// A plain src or dst, of any strides, for which one of the other f32 rows of the instruction set
// has no fast loops: it runs between reorders in the scratchpad. A src is read as it lies where
// that costs the row little: by a depthwise convolution, or by a direct one if its channels are
// neighbours, or if the window has one tap and images are small. What the direct convolution takes
// as it lies altogether is left to it, unless Winograd is chosen.
TILEWIRE_ROW(ConvolutionDesc, Plain);
TILEWIRE_COST(ConvolutionDesc, Plain);

// So few output channels that they would fill a small part of a vector, of many pixels and of at
// least a block of input channels: lanes are input channels in the sums, and pixels in dst.
//
//   src nChw16c      weights OIhw16i      dst plain, rows without gaps
TILEWIRE_ROW(ConvolutionDesc, FewOutputs);
TILEWIRE_COST(ConvolutionDesc, FewOutputs);

// Groups that are narrower than blocks of channels or begin inside one: of 1 input and n outputs,
// n and 1, or a few of each. Lanes are output channels, whichever their groups are, and each takes
// the channels of its own group from src (grouped_generator.h), so that an infinite activation
// reaches its own group only. Copies of wide groups into blocks of their own, which Direct makes,
// cost less.
//
//   src, dst  nChw16c; or nhwc, any strides between pixels, of whole vectors of channels; with
//             AVX-512 BF16, dst is bf16, nChw32c: what the row of AVX-512 computes, rounded
//   weights   [groups][rows of taps][inputs][taps][outputs of as many groups as fill vectors]
TILEWIRE_ROW(ConvolutionDesc, Grouped);
TILEWIRE_COST(ConvolutionDesc, Grouped);

// The direct convolution by products of bf16 numbers, two at a time (vdpbf16ps): from 16 input
// channels per group and 16 outputs on. src and dst are f32 or bf16 each. A src of f32 is rounded
// in the scratchpad, a few images at a time; one of bf16 is read as it lies. Between two of these
// convolutions either type gives the same bits. Weights are rounded where they are packed.
//
//   src, dst  f32 nChw16c, bf16 nChw32c; or nhwc, any strides between pixels, of whole blocks
//   weights   bf16 in OIhw16i16o2i, gOIhw16i16o2i, through `any` of f32
//
// Groups begin with a block. Numbers of src and weights from 3.396e38 on count as infinite,
// denormals as 0.
TILEWIRE_ROW(ConvolutionDesc, Pairs);
TILEWIRE_COST(ConvolutionDesc, Pairs);

// The integer convolution: u8 or s8 sources, s8 weights. The row's instruction set decides the
// registers.
//
//   src      nhwc, any strides between pixels; read in place if the channels of a group are a
//            multiple of 4 and, with VNNI, the type is u8; any other layout without blocks of
//            pixels is copied first (integer_stage.h)
//   weights  OIhw4i16o4i and the like: blocks of up to 64 input channels in quads, 16 output
//            channels (8 with AVX2), with groups gOIhw...; with VNNI and an s8 source they carry
//            their compensation (memory_desc.h)
//   dst      nhwc, any strides between pixels; nChw16c
// and the same with 1 and 3 spatial dimensions.
//
// On matrix tiles (AMX): at least 32 input channels per group, and rows of at least 4 pixels; a 1x1
// convolution with stride 1 has one long row. A source of either type is read in place if the
// channels of a group are a multiple of 64 and there is no padding; otherwise it is copied, with
// the padding around it and the channels rounded up to 64. Weights OIhw16i16o4i, without
// compensation.
//
// Sums are taken modulo 2^32: they are exact up to 65793 products.
TILEWIRE_ROW(ConvolutionDesc, Integer);

// The same on matrix tiles (AMX) for first layers: up to 4 input channels, windows of 5 to 8 dense
// taps along the width and at least 5 rows. A source of either type is copied with the padding
// around it, and then so that two rows of taps are side by side (row_pairs.h). Weights
// OIHW2h8w16o4i. Takes no range.
TILEWIRE_ROW(ConvolutionDesc, IntegerFirstLayer);

// The same for one channel per group. src nhwc or nChw16c, u8 or s8; weights Goihw16g; dst as
// above.
TILEWIRE_ROW(ConvolutionDesc, IntegerDepthwise);

// Winograd's convolutions F(2x2, 3x3) and F(4x4, 3x3) as rows of the table: f32, 3x3, stride 1,
// dense, one group, any padding. They take 2.25 and 4 times fewer multiplications than the direct
// convolution, but transforms of src and dst, and weights 1.8 and 4 times as large.
//
//   src, dst  nChw16c, or nChw8c for 8 lanes; weights  Winograd's own layout, through `any`
//
// A max pooling post-op is applied in the transform of the outputs, to the pixels of one tile.
// ConvolutionAlgorithm::kWinograd asks for it whatever it costs, kDirect forbids it. The error
// of an output relative to the root mean square of all is below 1e-5 against exact arithmetic. An
// infinity spreads as NaN over a tile.
// The row's algorithm is kWinograd2x3 or kWinograd4x3.
TILEWIRE_ROW(ConvolutionDesc, Winograd);
TILEWIRE_COST(ConvolutionDesc, Winograd);

// The same by products of three planes of bf16 on matrix tiles (AMX), six for each point: from the
// same src to the same dst, with errors that are smaller than those of f32. Weights are planes of
// Winograd's layout, of 6 bytes per number. For every precision.
TILEWIRE_ROW(ConvolutionDesc, WinogradByPlanes);
TILEWIRE_COST(ConvolutionDesc, WinogradByPlanes);

// Products of planes of bf16 on matrix tiles (AMX): one with the precision bf16, three with fast,
// six with exact, whose error is that of the direct convolution (plane_tile.h says how large the
// others' are).
//
//   src      f32 nChw16c, or bf16 nChw32c; or nhwc, any strides between pixels, of whole blocks of
//            channels. bf16 with the precision bf16
//   weights  planes of those of the direct convolution (plane_layout.h), which `any` becomes; or
//            OIhw16i16o, gOIhw16i16o, which are split in every run. Both give the same bits
//   dst      f32 or bf16 as src, or nhwc as of the direct convolution, without gaps between rows of
//            pixels
// and the same with 1 and 3 spatial dimensions; groups of whole blocks.
//
// A pixel of an f32 src whose window holds an infinity or NaN is computed by vectors, and so are
// all whose weights do: there the zeros of the padding count, so that an infinite weight makes NaN
// of them. A src of bf16 gives the bits of an f32 one that holds the same numbers: it is multiplied
// as it is, infinities too, and read where it lies by 1x1 convolutions of dense rows.
TILEWIRE_ROW(ConvolutionDesc, Planes);
TILEWIRE_COST(ConvolutionDesc, Planes);

// Another row, of any type, between reorders of the tensors whose layouts none takes; plain weights
// above all, which are packed in every run. Before the reference. Refuses tensors whose elements
// overlap: copies would be larger than what the caller holds.
TILEWIRE_ROW(ConvolutionDesc, Reordered);

TILEWIRE_ROW(ConvolutionDesc, Reference);

// The gradient of src as an operation on diff_dst, whose weights are copied in every run with input
// and output channels exchanged (backward/backward_data.cc): with a stride of 1, and of windows of
// one tap and short rows with any, a convolution by another row of the table, whichever serves it;
// by phases a deconvolution, of any strides, with groups of whole blocks. Weights in any layout
// with elements; src and dst as that row wants them.
TILEWIRE_ROW(ConvolutionDesc, BackwardData);
TILEWIRE_ROW(ConvolutionDesc, BackwardDataByPhases);

// The same of half as many channels of src as a vector has lanes, without groups, by a
// deconvolution to plain rows.
TILEWIRE_ROW(ConvolutionDesc, BackwardDataFewOutputs);

// The same of one channel a group, of any strides, in Depthwise's layouts
// (backward/depthwise_source_gradient.h).
TILEWIRE_ROW(ConvolutionDesc, BackwardDataDepthwise);

// The gradients of weights and bias (backward/weights_gradient_driver.h), in the layouts of Direct
// and FirstLayer. Groups that do not fill their blocks are copied to some that they fill.
TILEWIRE_ROW(ConvolutionDesc, BackwardWeights);

// The same of one channel a group, in Depthwise's layouts of blocks or of whole vectors.
TILEWIRE_ROW(ConvolutionDesc, BackwardWeightsDepthwise);

TILEWIRE_ROW(ConvolutionDesc, ReferenceBackward);

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_IMPLEMENTATIONS_H_
