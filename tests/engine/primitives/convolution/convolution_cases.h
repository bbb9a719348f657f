// SPDX-License-Identifier: Apache-2.0
//
// The shapes that every implementation of convolution is tested on.
#ifndef TESTS_ENGINE_PRIMITIVES_CONVOLUTION_CONVOLUTION_CASES_H_
#define TESTS_ENGINE_PRIMITIVES_CONVOLUTION_CONVOLUTION_CASES_H_

#include <vector>

#include "tests/engine/primitives/convolution/convolution_case.h"

namespace tilewire::testing {

std::vector<ConvolutionCase> ConvolutionCases();

}  // namespace tilewire::testing

#endif  // TESTS_ENGINE_PRIMITIVES_CONVOLUTION_CONVOLUTION_CASES_H_
