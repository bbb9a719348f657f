// SPDX-License-Identifier: Apache-2.0
//
// What each row of the table consists of; deconvolution.cc lists the rows. See implementation.h for
// resolve and create.
#ifndef ENGINE_PRIMITIVES_DECONVOLUTION_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_DECONVOLUTION_IMPLEMENTATIONS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/primitives/deconvolution/deconvolution.h"

namespace tilewire::deconvolution {

absl::StatusOr<DeconvolutionDesc> ResolveAvx512F32Direct(const DeconvolutionDesc& desc,
                                                         const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512F32Direct(const DeconvolutionDesc& desc,
                                                                 const Attributes& attributes,
                                                                 absl::string_view name);

absl::StatusOr<DeconvolutionDesc> ResolveAvx2F32Direct(const DeconvolutionDesc& desc,
                                                       const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2F32Direct(const DeconvolutionDesc& desc,
                                                               const Attributes& attributes,
                                                               absl::string_view name);

absl::StatusOr<DeconvolutionDesc> ResolveReference(const DeconvolutionDesc& desc,
                                                   const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const DeconvolutionDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name);

// kUnimplemented for types, propagations and attributes that no row takes.
absl::Status RequireForwardF32(const DeconvolutionDesc& desc, const Attributes& attributes);

PrimitiveInfo InfoOf(const DeconvolutionDesc& desc, const Attributes& attributes,
                     absl::string_view name);

}  // namespace tilewire::deconvolution

#endif  // ENGINE_PRIMITIVES_DECONVOLUTION_IMPLEMENTATIONS_H_
