// SPDX-License-Identifier: Apache-2.0
//
// Requirements of implementations on a descriptor, and their reports about themselves.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_REQUIREMENTS_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_REQUIREMENTS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/primitives/convolution/convolution.h"

namespace tilewire::convolution {

// kUnimplemented; the message says which tensor has which layout.
absl::Status RefuseLayout(absl::string_view tensor, const MemoryDesc& desc);

// kUnimplemented  the algorithm is not direct, or weights are in Winograd's layout
absl::Status RequireDirect(const ConvolutionDesc& desc);

// kUnimplemented  a tensor is not f32, there are output scales, the algorithm is not direct, or
//                 weights are in Winograd's layout
absl::Status RequireDirectF32(const ConvolutionDesc& desc, const Attributes& attributes);

// kUnimplemented  src or dst is neither f32 nor bf16, or bias is not f32
absl::Status RequireF32OrBf16(const ConvolutionDesc& desc);

// For rows that read f32: the one that needs AVX-512 BF16 writes bf16, in blocks, the others f32.
//   kUnimplemented  other types, output scales, an algorithm other than direct
absl::Status RequireTypesOfRow(const Request<ConvolutionDesc>& request);

// Whether src is u8 or s8.
bool IsInteger(const ConvolutionDesc& desc);

// kUnimplemented  types other than u8, s8 x s8 + f32, s32 -> u8, s8, s32, f32, or an algorithm
//                 other than direct
absl::Status RequireInteger(const ConvolutionDesc& desc);

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_REQUIREMENTS_H_
