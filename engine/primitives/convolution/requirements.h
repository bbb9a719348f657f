// SPDX-License-Identifier: Apache-2.0
//
// What implementations ask of a descriptor, and what they put in the place of `any`.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_REQUIREMENTS_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_REQUIREMENTS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/primitives/convolution/convolution.h"

namespace tilewire::convolution {

// kUnimplemented  a tensor that is not f32, output scales, or an algorithm other than direct
absl::Status RequireDirectF32(const ConvolutionDesc& desc, const Attributes& attributes);

// `desc` itself, or, where it is `any`, its dims in the layout of `pattern` (see format_tag.h).
absl::StatusOr<MemoryDesc> OrPattern(const MemoryDesc& desc, absl::string_view pattern);

// "abcd" for rank 4.
absl::string_view PlainPattern(int rank);

// The arguments that a primitive for `desc` tells about.
std::vector<ArgDesc> ArgsOf(const ConvolutionDesc& desc);

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_REQUIREMENTS_H_
