// SPDX-License-Identifier: Apache-2.0
//
// Convolution, forward (a cross-correlation, as in every CNN framework):
//
//   dst[n,oc,o] = postops(bias[oc] + sum over ic in oc's group, k of
//                         src[n, ic, o*stride + k*(dilation+1) - padding_left] * weights[oc,ic,k])
//
// for o, k over 1 to 3 spatial dimensions; src outside its bounds is 0.
//
// Types    f32 throughout; or u8, s8 x s8 with f32, s32 or no bias to u8, s8, s32, f32: exact s32
// sums, which become
//          f32, + bias, x output scale (one, or one an output channel: mask 2), post-ops in f32,
//          rounded to nearest even, saturated (ROWS.md Q01-Q10).
// Shapes   src [N,C,(D,(H,))W], weights [O,I,(D,(H,))W], or [G,O/G,I/G,...] with groups, bias [O]
// or the zero
//          descriptor, dst [N,O,...] with size (in + pl + pr - ((k-1)*(dilation+1)+1)) / stride +
//          1, rounded down.
// Dilation counts from 0: 0 is dense (ROWS.md P02).
// Pooling  with a max pooling post-op desc.dst stays the convolution's own result, of two spatial
//          dimensions of at least 2; it is `any` or dense, Desc(kArgDst) has the sizes of the
//          pooled one in its layout. Not together with a sum post-op, whose addend would have the
//          one shape and lie in the other. The bits are those of the same implementation followed
//          by pooling. Winograd convolutions do it in passing, wherever they can convolve; where
//          that is the slower algorithm, two primitives may be faster. The reference does the rest.
// Layouts  any of them `any`: the primitive chooses. Weights are never packed inside: reorder them
// to Desc(kArgWeights). Order of accumulation depends on the per-image descriptor and the
// instruction set only. Source   ROWS.md P02; Georganas et al., "Anatomy of high-performance deep
// learning convolutions on SIMD
//          architectures", SC'18.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_CONVOLUTION_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_CONVOLUTION_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

namespace convolution {
// ImplementationTraits::algorithm. F(2x2, 3x3) is 2x3 and F(4x4, 3x3) is 4x3, as in the names.
enum Algorithm : uint8_t { kDirect = 1, kFirstLayer, kDepthwise, kWinograd2x3, kWinograd4x3 };
}  // namespace convolution

enum class ConvolutionAlgorithm : uint8_t { kAuto = 0, kDirect, kWinograd };
absl::string_view AlgorithmName(ConvolutionAlgorithm algorithm);  // "auto"

struct ConvolutionDesc {
  PropKind prop_kind = PropKind::kForwardInference;
  ConvolutionAlgorithm algorithm = ConvolutionAlgorithm::kAuto;
  MemoryDesc src, weights, bias, dst;
  Dims strides, dilations, padding_left, padding_right;  // one a spatial dimension
};

// Best first; tests and benchmarks visit every row.
absl::Span<const Implementation<ConvolutionDesc>> ConvolutionImplementations();

//   kInvalidArgument    shapes that do not fit each other; the message names the dimension
//   kUnimplemented      no implementation takes it; the message lists why each refused
//   kResourceExhausted  memory
absl::StatusOr<std::shared_ptr<const Primitive>> CreateConvolution(const ConvolutionDesc& desc,
                                                                   const Attributes& attributes,
                                                                   const CreateOptions& options);

void AppendKey(const ConvolutionDesc& desc, std::string* key);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_CONVOLUTION_H_
