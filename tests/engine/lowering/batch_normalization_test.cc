// SPDX-License-Identifier: Apache-2.0
#include "gtest/gtest.h"
#include "tests/engine/lowering/subject.h"

namespace tilewire::testing {
namespace {

using network::NetworkBuilder;
using network::ValueId;

// Normalizes by the statistics of its batch, and gives the tensor and the statistics.
std::vector<ValueId> Normalized(const std::string& name, ValueId src, NetworkBuilder* b) {
  const Dims dims = b->dims(src), channels = {dims[1]};
  const ValueId scale = b->Numbers(name + ".scale", channels);
  const ValueId shift = b->Numbers(name + ".shift", channels);
  const ValueId dst =
      b->AddOperation(name, network::BatchNormalization{1e-3f}, {src, scale, shift}, dims);
  const std::vector<ValueId> statistics = {b->AddResult(name + ".mean", channels),
                                           b->AddResult(name + ".variance", channels)};
  return {dst, statistics[0], statistics[1]};
}

// Normalizes an input, a blocked tensor that nothing else reads, one that is read again, and rows.
// The statistics of the first are read in the network, too.
network::Network NormalizedByBatch(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 3, 6, 5});
  const std::vector<ValueId> given = Normalized("given", x, &b);
  const ValueId conv = b.Conv("conv", given[0], 20);
  const std::vector<ValueId> dead = Normalized("dead", conv, &b);
  const std::vector<ValueId> again = Normalized("again", dead[0], &b);
  const ValueId flat = b.Reshaped("flat", b.GlobalAverage("pool", again[0]), {n, 20});
  const std::vector<ValueId> rows = Normalized("rows", flat, &b);
  const ValueId spread =
      b.AddOperation("spread", network::Elementwise{network::Elementwise::Function::kAdd},
                     {given[1], given[2]}, {3});
  return b.Finish(
      {given[0], dead[0], dead[1], dead[2], again[0], again[2], rows[0], rows[1], rows[2], spread});
}

TEST(BatchNormalizationTest, ByTheStatisticsOfTheBatchWhichAreResults) {
  for (cpu::Isa isa : {cpu::Isa::kBaseline, cpu::BestIsa()}) {
    const Subject subject(NormalizedByBatch, Options(isa, 1));
    const std::vector<Tensor> want = subject.Expected();
    const auto got = subject.Run(kImages, Layout::kNchw, Layout::kNchw);
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(got->size(), want.size());
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_LE(RelativeL2((*got)[i], want[i]), 1e-5) << "output " << i;
    const Subject two(NormalizedByBatch, Options(isa, 2));
    const auto again = two.Run(kImages, Layout::kNchw, Layout::kNchw);
    ASSERT_TRUE(again.ok()) << again.status();
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_TRUE(BytesOf((*got)[i]) == BytesOf((*again)[i])) << "output " << i;
  }
}

}  // namespace
}  // namespace tilewire::testing
