// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/reordered.h"

#include "engine/primitives/convolution/implementations.h"

namespace tilewire::convolution {
namespace {

// Where a row takes src and dst as they are, it runs, and is the one that packed weights would
// get: src and dst may be what the plain rows reorder an image at a time.
absl::StatusOr<std::vector<ConvolutionDesc>> Ways(const ConvolutionDesc& desc,
                                                  const Attributes& attributes,
                                                  const ImplementationFacts& facts) {
  ABSL_ASSIGN_OR_RETURN(std::vector<ConvolutionDesc> ways, OpenTensors(desc));
  const std::vector<ConvolutionDesc> weights_alone = {ways.front()};
  if (FindInnerRow<ConvolutionDesc>(ConvolutionImplementations(), weights_alone, attributes, facts)
          .ok())
    return weights_alone;
  return ways;
}

absl::Status RequireNoOverlap(const ConvolutionDesc& desc) {
  for (const MemoryDesc* tensor : {&desc.src, &desc.weights}) {
    if (!tensor->IsAny() && tensor->Overlaps())
      return absl::UnimplementedError("copies no tensor whose elements overlap");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ConvolutionDesc> ResolveReordered(const ConvolutionDesc& desc,
                                                 const Attributes& attributes,
                                                 const ImplementationFacts& facts) {
  ABSL_RETURN_IF_ERROR(RequireNoOverlap(desc));
  ABSL_ASSIGN_OR_RETURN(const std::vector<ConvolutionDesc> ways, Ways(desc, attributes, facts));
  return ResolveBetweenReorders<ConvolutionDesc>(ConvolutionImplementations(), desc, ways,
                                                 attributes, facts);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReordered(const ConvolutionDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts) {
  ABSL_ASSIGN_OR_RETURN(const std::vector<ConvolutionDesc> ways, Ways(desc, attributes, facts));
  return CreateBetweenReorders<ConvolutionDesc>(ConvolutionImplementations(), desc, ways,
                                                attributes, facts);
}

}  // namespace tilewire::convolution
