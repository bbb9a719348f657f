// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/row_choice.h"

#include <optional>
#include <utility>

#include "engine/primitives/convolution/geometry.h"

namespace tilewire::convolution {

const ImplementationFacts* ChooseRow(const ConvolutionDesc& desc, const Attributes& attributes,
                                     const CreateOptions& options) {
  if (!Validate(desc, attributes).ok()) return nullptr;
  RowSearch search({}, PropKind::kForwardInference, /*has_other_types=*/false, attributes, options);
  const auto first = FirstCandidate<ConvolutionDesc>(
      ConvolutionImplementations(),
      [&](const Implementation<ConvolutionDesc>& row) -> std::optional<Candidate<ConvolutionDesc>> {
        if (!search.Admits(row)) return std::nullopt;
        auto candidate = Ask(row, {desc, attributes, row, options.machine});
        return candidate.ok() ? std::optional(*std::move(candidate)) : std::nullopt;
      });
  return first ? first->row : nullptr;
}

}  // namespace tilewire::convolution
