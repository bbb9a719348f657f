// SPDX-License-Identifier: Apache-2.0
//
// A random descriptor of what training runs: gradients of any primitive that has some, forward for
// training, and losses. Most fit their primitive; some have a gradient or a workspace too few or
// too many, or those of another problem. Everything follows from the state of `random`.
#ifndef TESTS_ENGINE_PRIMITIVES_RANDOM_DESCRIPTORS_RANDOM_GRADIENT_H_
#define TESTS_ENGINE_PRIMITIVES_RANDOM_DESCRIPTORS_RANDOM_GRADIENT_H_

#include "absl/status/statusor.h"
#include "tests/engine/primitives/random_descriptors/random_descriptor.h"

namespace tilewire::testing {

struct RandomGradientCase : RandomCase {
  // Its numbers are small, and it is computed exactly: rows come to about the same results.
  bool is_comparable = false;
};

// Errors are those of MemoryDesc's factories and of PostOps::Append().
absl::StatusOr<RandomGradientCase> RandomGradient(Random& random);

}  // namespace tilewire::testing

#endif  // TESTS_ENGINE_PRIMITIVES_RANDOM_DESCRIPTORS_RANDOM_GRADIENT_H_
