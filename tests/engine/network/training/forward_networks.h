// SPDX-License-Identifier: Apache-2.0
//
// Small networks to be differentiated by all their inputs of f32: each has one output, and kinks
// where pseudo-random numbers hardly come.
#ifndef TESTS_ENGINE_NETWORK_TRAINING_FORWARD_NETWORKS_H_
#define TESTS_ENGINE_NETWORK_TRAINING_FORWARD_NETWORKS_H_

#include "absl/types/span.h"
#include "engine/network/network.h"

namespace tilewire::testing {

struct ForwardCase {
  const char* name;
  // The network, to which the gradients of its output, times an input "seed", have been added; they
  // are its outputs, one per input before.
  network::Network (*differentiated)(int64_t);
  network::Network (*forward)();
};
absl::Span<const ForwardCase> ForwardCases();

// A convolution, a relu, a maximum, a product and an addition that is broadcast: as digits.
network::Network ConvolvedAndClassified();

}  // namespace tilewire::testing

#endif  // TESTS_ENGINE_NETWORK_TRAINING_FORWARD_NETWORKS_H_
