// SPDX-License-Identifier: Apache-2.0
//
// Which row of the table a convolution takes, found without creating anything. Pure; thread-safe.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_ROW_CHOICE_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_ROW_CHOICE_H_

#include "engine/primitives/convolution/convolution.h"

namespace tilewire::convolution {

// The first row that CreateConvolution() would ask to create the primitive, by its place in the
// table; null where none takes the descriptor.
const ImplementationFacts* ChooseRow(const ConvolutionDesc& desc, const Attributes& attributes,
                                     const CreateOptions& options);

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_ROW_CHOICE_H_
