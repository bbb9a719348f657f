// SPDX-License-Identifier: Apache-2.0
//
// Convolution (a cross-correlation, as in every CNN framework), forward:
//
//   dst[n,oc,o] = postops(bias[oc] + sum over ic in oc's group, k of
//                         src[n, ic, o*stride + k*(dilation+1) - padding_left] * weights[oc,ic,k])
//
// for o, k over 1 to 3 spatial dimensions; src outside its bounds is 0. Backward:
//
//   backward_data     diff_src[n,ic,i] = postops(sum over oc of ic's group, k, o with
//                     i = o*stride + k*(dilation+1) - padding_left of
//                     diff_dst[n,oc,o] * weights[oc,ic,k])
//   backward_weights  diff_weights[oc,ic,k] = postops(sum over n, o of diff_dst[n,oc,o] *
//                     src[n, ic, o*stride + k*(dilation+1) - padding_left])
//                     diff_bias[oc] = postops(sum over n, o of diff_dst[n,oc,o])
//
// Algorithm Winograd's, where it is asked for, or none: what has no such row is refused. Backward
//           data has it for windows of 3x3 with stride 1, without dilation and groups; the row
//           then runs Winograd's convolution of diff_dst inside. Backward weights has none.
// Backward  f32. weighted_gradients.h says what the fields of a descriptor are then, and which
//           post-ops there are. The rest is of forward propagation, where it is not about shapes.
// Types     f32 throughout, but that src and dst may each be bf16, to which results are rounded to
//           nearest even; or src u8 or s8, weights s8, bias f32, s32 or none, and dst u8, s8, s32
//           or f32. Integers give exact s32 sums, which become f32; then bias is added, the output
//           scale (one, or one per output channel: mask 2) multiplied, post-ops are applied in f32,
//           and the result is rounded to nearest even and saturated (tests/engine/rows.txt Q01 to
//           Q10).
//           With a `range`, which holds the scale and the zero point of a u8 src at run time, the
//           sums are of src less its zero point, times weights less theirs. They are multiplied by
//           that scale and by the output scale; then bias is added. Padding counts as zero points.
// Shapes    src [N,C,(D,(H,))W]; weights [O,I,(D,(H,))W], or [G,O/G,I/G,...] with groups; bias [O]
//           or the zero descriptor; dst [N,O,...], whose sizes are
//           (in + pl + pr - ((k-1)*(dilation+1)+1)) / stride + 1, rounded down.
// Dilation  counts from 0: 0 is dense (tests/engine/rows.txt P02).
// Pooling   With a max pooling post-op desc.dst stays the convolution's own result, of two spatial
//           dimensions of at least 2. It is `any` or dense; Desc(kArgDst) has the sizes of the
//           pooled tensor, in the same layout. A sum post-op is refused together with it, because
//           its addend would have the shape of one and lie in the other. The bits are those of the
//           same implementation followed by pooling. Winograd convolutions pool in passing wherever
//           they can convolve; where Winograd is the slower algorithm, two primitives may be
//           faster. The reference does the rest.
// Layouts   Each may be `any`: the primitive chooses. Reorder weights once, to Desc(kArgWeights);
//           those of a layout that is named are packed in the scratchpad, in every run. Plain f32
//           tensors are read and written as they lie where that is fast, else the primitive
//           reorders them in its scratchpad, and so are tensors of the layouts that no row takes.
// Order     The order of accumulation depends only on the descriptor of one image and on the
//           instruction set. Images of gradients of weights are added in their order: a batch may
//           be cut between them, later parts added by `sum`, and gives the same bits.
// Source    tests/engine/rows.txt P02; Georganas et al., "Anatomy of high-performance deep learning
//           convolutions on SIMD architectures", SC'18.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_CONVOLUTION_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_CONVOLUTION_H_

#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

namespace convolution {
// ImplementationTraits::algorithm. F(2x2, 3x3) is 2x3 and F(4x4, 3x3) is 4x3, as in the names;
// kGrouped is for groups that are narrower than blocks of channels, or begin inside one;
// kPlain is any of the others between reorders; kMatrixTiles is direct, where there are channels
// and pixels enough to fill tiles; kPlanes adds products of bf16 numbers on matrix tiles.
enum Algorithm : uint8_t {
  kDirect = 1,
  kFirstLayer,
  kDepthwise,
  kFewOutputs,
  kGrouped,
  kWinograd2x3,
  kWinograd4x3,
  kPlain,
  kMatrixTiles,
  kPlanes
};
}  // namespace convolution

// kTraining: as kAuto, without F(4x4, 3x3), whose errors add up from layer to layer. No client
// names it.
enum class ConvolutionAlgorithm : uint8_t { kAuto = 0, kDirect, kWinograd, kTraining };
absl::string_view AlgorithmName(ConvolutionAlgorithm algorithm);  // "auto"

struct ConvolutionDesc {
  PropKind prop_kind = PropKind::kForwardInference;
  ConvolutionAlgorithm algorithm = ConvolutionAlgorithm::kAuto;
  MemoryDesc src, weights, bias, dst;
  Dims strides, dilations, padding_left, padding_right;  // one per spatial dimension
  MemoryDesc range = {};           // [2], of quantization_range.h; the zero descriptor: none
  int32_t weights_zero_point = 0;  // -128 to 127; other than 0 only with a range
};
TILEWIRE_FIELDS(ConvolutionDesc, prop_kind, algorithm, src, weights, bias, dst, strides, dilations,
                padding_left, padding_right, range, weights_zero_point);

//   kInvalidArgument  shapes that do not fit each other; the message names the dimension
//   kUnimplemented    a gradient by an algorithm that it does not have
TILEWIRE_PRIMITIVE_FUNCTIONS(Convolution);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_CONVOLUTION_H_
