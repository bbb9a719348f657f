// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of convolution.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_IMPLEMENTATIONS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/primitives/convolution/convolution.h"

namespace tilewire::convolution {

absl::StatusOr<ConvolutionDesc> ResolveReference(const ConvolutionDesc& desc,
                                                 const Attributes& attributes,
                                                 const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const ConvolutionDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts);

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_IMPLEMENTATIONS_H_
