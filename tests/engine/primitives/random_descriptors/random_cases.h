// SPDX-License-Identifier: Apache-2.0
//
// The frame of tests that run random cases through the engine's door: engines for the instruction
// sets of this machine, and a loop over cases, none of which may take more time or memory than its
// tensors account for. A case depends on its number alone.
//
//   TILEWIRE_DESCRIPTORS        how many
//   TILEWIRE_FIRST_DESCRIPTOR   the first one (default 0)
//   TILEWIRE_MOST_OPERATIONS    larger ones are created and not executed
#ifndef TESTS_ENGINE_PRIMITIVES_RANDOM_DESCRIPTORS_RANDOM_CASES_H_
#define TESTS_ENGINE_PRIMITIVES_RANDOM_DESCRIPTORS_RANDOM_CASES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "engine/engine.h"
#include "engine/primitive_engine.h"
#include "gtest/gtest.h"
#include "tests/engine/primitives/random_descriptors/random_descriptor.h"

namespace tilewire::testing {

constexpr double kMostTensorBytes = 512 << 20;   // the service's bound for messages of 64 MB
constexpr double kMostExecutedBytes = 64 << 20;  // of all tensors

class RandomCasesTest : public ::testing::Test {
 protected:
  // The best instruction set of this machine, and those below it. `kind` names a case, as "random
  // descriptor"; what the environment does not set is `count` and `most_operations`.
  RandomCasesTest(const char* kind, int64_t count, double most_operations);

  // Calls run(random) for each case, until one fails; then prints the counts.
  void RunCases(uint64_t seed, absl::FunctionRef<void(Random&)> run);

  void Count(const std::string& what) { ++counts_[what]; }
  // Counts a refusal with a message; any other status fails the test.
  void CountRefusal(const absl::Status& status, const std::string& what);
  int64_t CountOf(const std::string& what) const;
  int64_t cases() const { return count_; }
  // Creates the primitive of `test` on any engine, and calls execute() with both unless it is
  // refused or too large, which is counted.
  void Try(Random& random, const RandomCase& test,
           absl::FunctionRef<void(PrimitiveEngine&, const Primitive&)> execute);

 private:
  void RunCase(int64_t index, uint64_t seed, absl::FunctionRef<void(Random&)> run);
  // Created, and not too large to be executed. Counts what is.
  bool MayExecute(const OpDesc& desc, const PrimitiveInfo& info);
  PrimitiveEngine& AnyEngine(Random& random);

  const int64_t first_, count_;
  const double most_operations_;
  std::vector<std::unique_ptr<Engine>> engines_;
  std::map<std::string, int64_t> counts_;
};

}  // namespace tilewire::testing

#endif  // TESTS_ENGINE_PRIMITIVES_RANDOM_DESCRIPTORS_RANDOM_CASES_H_
