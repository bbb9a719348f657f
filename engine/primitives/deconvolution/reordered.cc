// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/reordered.h"

#include "engine/primitives/deconvolution/implementations.h"

namespace tilewire::deconvolution {

absl::StatusOr<DeconvolutionDesc> ResolveReordered(const DeconvolutionDesc& desc,
                                                   const Attributes& attributes,
                                                   const ImplementationFacts& facts) {
  ABSL_ASSIGN_OR_RETURN(const std::vector<DeconvolutionDesc> ways, OpenTensors(desc));
  return ResolveBetweenReorders<DeconvolutionDesc>(DeconvolutionImplementations(), desc, ways,
                                                   attributes, facts);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReordered(const DeconvolutionDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts) {
  ABSL_ASSIGN_OR_RETURN(const std::vector<DeconvolutionDesc> ways, OpenTensors(desc));
  return CreateBetweenReorders<DeconvolutionDesc>(DeconvolutionImplementations(), desc, ways,
                                                  attributes, facts);
}

}  // namespace tilewire::deconvolution
