// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of deconvolution.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_DECONVOLUTION_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_DECONVOLUTION_IMPLEMENTATIONS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/primitives/deconvolution/deconvolution.h"

namespace tilewire::deconvolution {

absl::StatusOr<DeconvolutionDesc> ResolveReference(const DeconvolutionDesc& desc,
                                                   const Attributes& attributes,
                                                   const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const DeconvolutionDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts);

// kUnimplemented for types, propagations and attributes that no row takes.
absl::Status RequireForwardF32(const DeconvolutionDesc& desc, const Attributes& attributes);

}  // namespace tilewire::deconvolution

#endif  // ENGINE_PRIMITIVES_DECONVOLUTION_IMPLEMENTATIONS_H_
