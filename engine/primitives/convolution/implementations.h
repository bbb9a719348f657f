// SPDX-License-Identifier: Apache-2.0
//
// What each row of the table consists of; convolution.cc lists the rows. See implementation.h for
// resolve and create.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_IMPLEMENTATIONS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/primitives/convolution/convolution.h"

namespace tilewire::convolution {

absl::StatusOr<ConvolutionDesc> ResolveAvx512F32Depthwise(const ConvolutionDesc& desc,
                                                          const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512F32Depthwise(const ConvolutionDesc& desc,
                                                                    const Attributes& attributes,
                                                                    absl::string_view name);

absl::StatusOr<ConvolutionDesc> ResolveAvx512F32FirstLayer(const ConvolutionDesc& desc,
                                                           const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512F32FirstLayer(const ConvolutionDesc& desc,
                                                                     const Attributes& attributes,
                                                                     absl::string_view name);

absl::StatusOr<ConvolutionDesc> ResolveAvx512F32Winograd4x3(const ConvolutionDesc& desc,
                                                            const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512F32Winograd4x3(const ConvolutionDesc& desc,
                                                                      const Attributes& attributes,
                                                                      absl::string_view name);

absl::StatusOr<ConvolutionDesc> ResolveAvx512F32Winograd2x3(const ConvolutionDesc& desc,
                                                            const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512F32Winograd2x3(const ConvolutionDesc& desc,
                                                                      const Attributes& attributes,
                                                                      absl::string_view name);

absl::StatusOr<ConvolutionDesc> ResolveAvx512F32Direct(const ConvolutionDesc& desc,
                                                       const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512F32Direct(const ConvolutionDesc& desc,
                                                                 const Attributes& attributes,
                                                                 absl::string_view name);

absl::StatusOr<ConvolutionDesc> ResolveAvx2F32Depthwise(const ConvolutionDesc& desc,
                                                        const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2F32Depthwise(const ConvolutionDesc& desc,
                                                                  const Attributes& attributes,
                                                                  absl::string_view name);

absl::StatusOr<ConvolutionDesc> ResolveAvx2F32FirstLayer(const ConvolutionDesc& desc,
                                                         const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2F32FirstLayer(const ConvolutionDesc& desc,
                                                                   const Attributes& attributes,
                                                                   absl::string_view name);

absl::StatusOr<ConvolutionDesc> ResolveAvx2F32Winograd4x3(const ConvolutionDesc& desc,
                                                          const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2F32Winograd4x3(const ConvolutionDesc& desc,
                                                                    const Attributes& attributes,
                                                                    absl::string_view name);

absl::StatusOr<ConvolutionDesc> ResolveAvx2F32Winograd2x3(const ConvolutionDesc& desc,
                                                          const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2F32Winograd2x3(const ConvolutionDesc& desc,
                                                                    const Attributes& attributes,
                                                                    absl::string_view name);

absl::StatusOr<ConvolutionDesc> ResolveAvx2F32Direct(const ConvolutionDesc& desc,
                                                     const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2F32Direct(const ConvolutionDesc& desc,
                                                               const Attributes& attributes,
                                                               absl::string_view name);

absl::StatusOr<ConvolutionDesc> ResolveAvx512VnniU8S8Direct(const ConvolutionDesc& desc,
                                                            const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512VnniU8S8Direct(const ConvolutionDesc& desc,
                                                                      const Attributes& attributes,
                                                                      absl::string_view name);

absl::StatusOr<ConvolutionDesc> ResolveAvx512U8S8Direct(const ConvolutionDesc& desc,
                                                        const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512U8S8Direct(const ConvolutionDesc& desc,
                                                                  const Attributes& attributes,
                                                                  absl::string_view name);

absl::StatusOr<ConvolutionDesc> ResolveAvx2U8S8Direct(const ConvolutionDesc& desc,
                                                      const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2U8S8Direct(const ConvolutionDesc& desc,
                                                                const Attributes& attributes,
                                                                absl::string_view name);

absl::StatusOr<ConvolutionDesc> ResolveAvx512VnniU8S8Depthwise(const ConvolutionDesc& desc,
                                                               const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512VnniU8S8Depthwise(
    const ConvolutionDesc& desc, const Attributes& attributes, absl::string_view name);

absl::StatusOr<ConvolutionDesc> ResolveAvx512U8S8Depthwise(const ConvolutionDesc& desc,
                                                           const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512U8S8Depthwise(const ConvolutionDesc& desc,
                                                                     const Attributes& attributes,
                                                                     absl::string_view name);

absl::StatusOr<ConvolutionDesc> ResolveAvx2U8S8Depthwise(const ConvolutionDesc& desc,
                                                         const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2U8S8Depthwise(const ConvolutionDesc& desc,
                                                                   const Attributes& attributes,
                                                                   absl::string_view name);

absl::StatusOr<ConvolutionDesc> ResolveReference(const ConvolutionDesc& desc,
                                                 const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const ConvolutionDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name);

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_IMPLEMENTATIONS_H_
