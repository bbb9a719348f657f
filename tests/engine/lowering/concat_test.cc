// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "gtest/gtest.h"
#include "tests/engine/lowering/subject.h"

namespace tilewire::testing {
namespace {

// The steps of a plan that concatenate, and those that copy a part of a concatenation.
std::pair<int, int> ConcatsAndCopies(absl::string_view network, int64_t batch) {
  const Subject subject(network::FindNetwork(network), Options(cpu::BestIsa(), 1));
  int concats = 0, copies = 0;
  const Explanation plan = subject.model->Explain({.batch = batch}).value();
  for (const PlanStep& step : plan.steps) {
    concats += step.primitive == "concat";
    copies += step.remark == "copies a part of a concatenation";
  }
  return {concats, copies};
}

// Each source is written where it belongs. A source that belongs to the request, that is an output,
// or that is concatenated twice is copied.
TEST(ConcatTest, IsNoStepAtAnyBatch) {
  for (int64_t batch : {1, 2}) {
    EXPECT_EQ(ConcatsAndCopies("ConcatsOfWholeBlocks", batch),
              batch == 1 ? std::pair(0, 4) : std::pair(1, 3))
        << "second, x and third again; end is an output, and tanh takes dense tensors only";
    EXPECT_EQ(ConcatsAndCopies("ConcatsOfSeveralImages", batch), std::pair(0, 0));
  }
}

}  // namespace
}  // namespace tilewire::testing
