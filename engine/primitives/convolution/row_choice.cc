// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/row_choice.h"

#include "engine/primitives/convolution/geometry.h"

namespace tilewire::convolution {

const ImplementationFacts* ChooseRow(const ConvolutionDesc& desc, const Attributes& attributes,
                                     const CreateOptions& options) {
  if (!Validate(desc, attributes).ok()) return nullptr;
  RowSearch search({}, /*has_other_types=*/false, attributes, options);
  for (const Implementation<ConvolutionDesc>& row : ConvolutionImplementations()) {
    if (search.Admits(row) && row.resolve({desc, attributes, row}).ok()) return &row;
  }
  return nullptr;
}

}  // namespace tilewire::convolution
