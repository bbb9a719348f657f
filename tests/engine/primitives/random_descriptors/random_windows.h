// SPDX-License-Identifier: Apache-2.0
//
// Random descriptors of the primitives whose windows move over an image: convolution,
// deconvolution and pooling. Strides, dilations and paddings may be so large that one position is
// left, which is legal.
#ifndef TESTS_ENGINE_PRIMITIVES_RANDOM_DESCRIPTORS_RANDOM_WINDOWS_H_
#define TESTS_ENGINE_PRIMITIVES_RANDOM_DESCRIPTORS_RANDOM_WINDOWS_H_

#include "absl/status/statusor.h"
#include "engine/primitives/primitives.h"
#include "tests/engine/primitives/random_descriptors/tensor_maker.h"

namespace tilewire::testing {

absl::StatusOr<OpDesc> RandomConvolution(TensorMaker& make);
absl::StatusOr<OpDesc> RandomDeconvolution(TensorMaker& make);
absl::StatusOr<OpDesc> RandomPooling(TensorMaker& make);

}  // namespace tilewire::testing

#endif  // TESTS_ENGINE_PRIMITIVES_RANDOM_DESCRIPTORS_RANDOM_WINDOWS_H_
