// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/reordered.h"

#include "engine/primitives/deconvolution/implementations.h"

namespace tilewire::deconvolution {

absl::StatusOr<DeconvolutionDesc> ResolveReordered(const Request<DeconvolutionDesc>& request) {
  return ResolveBetweenReorders(DeconvolutionImplementations(), OpenTensors(request.desc), request);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReordered(
    const Request<DeconvolutionDesc>& request) {
  return CreateBetweenReorders(DeconvolutionImplementations(), OpenTensors(request.desc), request);
}

}  // namespace tilewire::deconvolution
