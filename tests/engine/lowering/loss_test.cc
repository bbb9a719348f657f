// SPDX-License-Identifier: Apache-2.0
#include "gtest/gtest.h"
#include "tests/engine/lowering/subject.h"

namespace tilewire::testing {
namespace {

TEST(LossTest, MeansOverTheBatchAreTheOraclesOnAnyNumberOfThreads) {
  for (cpu::Isa isa : {cpu::Isa::kBaseline, cpu::BestIsa()}) {
    const Subject subject(network::MeanLosses, Options(isa, 1));
    const Subject two(network::MeanLosses, Options(isa, 2));
    const std::vector<Tensor> want = subject.Expected();
    const auto got = subject.Run(kImages, Layout::kNchw, Layout::kNchw);
    const auto again = two.Run(kImages, Layout::kNchw, Layout::kNchw);
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_TRUE(again.ok()) << again.status();
    ASSERT_EQ(got->size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_LE(RelativeL2((*got)[i], want[i]), 1e-5) << "output " << i;
      EXPECT_TRUE(BytesOf((*got)[i]) == BytesOf((*again)[i])) << "output " << i;
    }
  }
}

}  // namespace
}  // namespace tilewire::testing
