// SPDX-License-Identifier: Apache-2.0
//
// Random descriptors of the primitives that are only steps of models.
#ifndef TESTS_ENGINE_PRIMITIVES_RANDOM_DESCRIPTORS_RANDOM_STEPS_H_
#define TESTS_ENGINE_PRIMITIVES_RANDOM_DESCRIPTORS_RANDOM_STEPS_H_

#include "absl/status/statusor.h"
#include "engine/primitives/primitives.h"
#include "tests/engine/primitives/random_descriptors/tensor_maker.h"

namespace tilewire::testing {

absl::StatusOr<OpDesc> RandomSelect(TensorMaker& make);
absl::StatusOr<OpDesc> RandomGather(TensorMaker& make);
absl::StatusOr<OpDesc> RandomGatherChannels(TensorMaker& make);
absl::StatusOr<OpDesc> RandomQuantize(TensorMaker& make);
absl::StatusOr<OpDesc> RandomIntegerSum(TensorMaker& make);
absl::StatusOr<OpDesc> RandomInterpolate(TensorMaker& make);
absl::StatusOr<OpDesc> RandomMaxWindow(TensorMaker& make);
absl::StatusOr<OpDesc> RandomTopK(TensorMaker& make);
absl::StatusOr<OpDesc> RandomElementwise(TensorMaker& make);
absl::StatusOr<OpDesc> RandomRnn(TensorMaker& make);
absl::StatusOr<OpDesc> RandomRoiAlign(TensorMaker& make);

}  // namespace tilewire::testing

#endif  // TESTS_ENGINE_PRIMITIVES_RANDOM_DESCRIPTORS_RANDOM_STEPS_H_
