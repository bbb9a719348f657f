// SPDX-License-Identifier: Apache-2.0
//
// 3x3 convolutions with stride 1 in double precision, which Winograd's are measured against.
#ifndef TESTS_ENGINE_PRIMITIVES_CONVOLUTION_EXACT_CONVOLUTION_H_
#define TESTS_ENGINE_PRIMITIVES_CONVOLUTION_EXACT_CONVOLUTION_H_

#include <vector>

#include "engine/kernels/attributes.h"
#include "tests/engine/primitives/convolution/convolution_case.h"

namespace tilewire::testing {

// One group, with the post-ops of `chain`: sums, PRelu and element-wise functions.
std::vector<double> ExactConvolution(const ConvolutionCase& shape, const Contents& contents,
                                     const std::vector<PostOp>& chain);

}  // namespace tilewire::testing

#endif  // TESTS_ENGINE_PRIMITIVES_CONVOLUTION_EXACT_CONVOLUTION_H_
