// SPDX-License-Identifier: Apache-2.0
//
// What implementations ask of a descriptor, and what they tell about themselves.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_REQUIREMENTS_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_REQUIREMENTS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/primitives/convolution/convolution.h"

namespace tilewire::convolution {

// kUnimplemented  a tensor that is not f32, output scales, an algorithm other than direct, or
// weights in Winograd's layout
absl::Status RequireDirectF32(const ConvolutionDesc& desc, const Attributes& attributes);

// Without scratchpad and code.
PrimitiveInfo InfoOf(const ConvolutionDesc& desc, const Attributes& attributes,
                     absl::string_view name);

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_REQUIREMENTS_H_
