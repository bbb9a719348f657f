// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "gtest/gtest.h"
#include "tests/engine/lowering/subject.h"

namespace tilewire::testing {
namespace {

TEST(IntegerFusionTest, FoldedOperationsAreAtMostOneUnitOff) {
  for (const cpu::Isa isa :
       {cpu::Isa::kBaseline, cpu::Isa::kAvx2, cpu::Isa::kAvx512, cpu::Isa::kAvx512Vnni}) {
    if (!cpu::Supports(isa)) continue;
    const Subject subject(network::QuantizedOrdinary, Options(isa, 1));
    const std::vector<Tensor> want = subject.Expected();
    const std::vector<Tensor> got = subject.Run(kImages, Layout::kNchw, Layout::kNchw).value();
    for (size_t i = 0; i < want.size(); ++i) {
      int64_t off = 0;
      for (size_t k = 0; k < want[i].size(); ++k) {
        const float units = std::abs(got[i][k] - want[i][k]) / network::kOrdinaryStep;
        ASSERT_LE(units, 1.01f) << cpu::IsaName(isa) << ", output " << i;
        off += units > 0.5f;
      }
      // Only results half-way between two integers may differ.
      EXPECT_LE(off, static_cast<int64_t>(want[i].size()) / 100) << "output " << i;
    }
  }
}

}  // namespace
}  // namespace tilewire::testing
