// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/reordered.h"

#include "engine/primitives/convolution/implementations.h"

namespace tilewire::convolution {
namespace {

// Where a row takes src and dst as they are, it runs, and is the one that packed weights would
// get: src and dst may be what the plain rows reorder an image at a time.
absl::StatusOr<std::vector<ConvolutionDesc>> Ways(const Request<ConvolutionDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(std::vector<ConvolutionDesc> ways, OpenTensors(request.desc));
  const std::vector<ConvolutionDesc> weights_alone = {ways.front()};
  if (FindInnerRow(ConvolutionImplementations(), weights_alone, request).ok()) return weights_alone;
  return ways;
}

absl::Status RequireNoOverlap(const ConvolutionDesc& desc) {
  for (const MemoryDesc* tensor : {&desc.src, &desc.weights}) {
    if (!tensor->IsAny() && tensor->Overlaps())
      return Unimplemented("copies no tensor whose elements overlap");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ConvolutionDesc> ResolveReordered(const Request<ConvolutionDesc>& request) {
  ABSL_RETURN_IF_ERROR(RequireNoOverlap(request.desc));
  return ResolveBetweenReorders(ConvolutionImplementations(), Ways(request), request);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReordered(
    const Request<ConvolutionDesc>& request) {
  return CreateBetweenReorders(ConvolutionImplementations(), Ways(request), request);
}

}  // namespace tilewire::convolution
