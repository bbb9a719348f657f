// SPDX-License-Identifier: Apache-2.0
//
// The oracle's outputs of a network, and how far an answer may be from them. The bound of an output
// follows from what a relative change of 2^-16 of the inputs, weights and literals does to it, with
// one of 2^-21 of each result on the way, or of 1 for smaller results of recurrent layers and
// normalizations.
#ifndef TESTS_FUZZ_NETWORKS_EXPECTATION_H_
#define TESTS_FUZZ_NETWORKS_EXPECTATION_H_

#include <string>
#include <vector>

#include "engine/network/network.h"
#include "tests/support/oracle/operations.h"
#include "tests/support/random_tensor.h"

namespace tilewire::testing {

class Expectation {
 public:
  Expectation(const network::Network& network, const std::vector<Elements>& inputs, Random& random);

  // Whether rounding leaves the outputs about as they are: nothing overflows on the way. Outputs
  // that depend on comparisons or roundings to whole numbers are taken as they come.
  bool is_comparable() const { return is_comparable_; }

  // The first difference that is too large; empty if there is none.
  std::string Difference(size_t output, const Elements& got) const;

 private:
  // How an output depends on roundings: continuously, by steps of 8 bits, by jumps of any size.
  enum class Smoothness { kContinuous, kSteps, kJumps };

  std::vector<Elements> want_;
  std::vector<double> bounds_;  // by output
  std::vector<Smoothness> smoothness_;
  bool is_comparable_ = true;
};

}  // namespace tilewire::testing

#endif  // TESTS_FUZZ_NETWORKS_EXPECTATION_H_
