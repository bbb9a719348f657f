// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "gtest/gtest.h"
#include "tests/engine/lowering/subject.h"

namespace tilewire::testing {
namespace {

using network::NetworkBuilder;
using network::ValueId;

// Normalizes by computed parameters and gives the tensor and its rows' statistics.
std::vector<ValueId> RowsNormalized(const std::string& name, ValueId src, NetworkBuilder* b) {
  const Dims dims = b->dims(src), row = {dims.back()};
  Dims rows = dims;
  rows.pop_back();
  network::LayerNormalization norm{
      .epsilon = 1e-3f, .reads_parameters = true, .saves_statistics = true};
  const ValueId scale = b->Numbers(name + ".scale", row), shift = b->Numbers(name + ".shift", row);
  const ValueId dst = b->AddOperation(name, norm, {src, scale, shift}, dims);
  return {dst, b->AddResult(name + ".mean", rows), b->AddResult(name + ".variance", rows)};
}

// Rows of an input, of a blocked tensor, of a sum that is read again, and of five dimensions;
// without statistics and without parameters.
network::Network NormalizedRows(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 20, 6, 5});
  const std::vector<ValueId> given = RowsNormalized("given", x, &b);
  const std::vector<ValueId> blocked = RowsNormalized("blocked", b.Conv("conv", given[0], 20), &b);
  const ValueId sum = b.SumOf("sum", {blocked[0], x});
  const std::vector<ValueId> residual = RowsNormalized("residual", sum, &b);
  const ValueId cube = b.Reshaped("cube", residual[0], {n, 2, 10, 6, 5});
  const std::vector<ValueId> deep = RowsNormalized("deep", cube, &b);
  const ValueId matrix = b.Reshaped("matrix", deep[0], {n, 600});
  const std::vector<ValueId> rows = RowsNormalized("rows", matrix, &b);
  const network::LayerNormalization computed{.reads_parameters = true},
      bare{.saves_statistics = true};
  const ValueId alone = b.AddOperation(
      "alone", computed, {rows[0], b.Numbers("scale", {600}), b.Numbers("shift", {600})}, {n, 600});
  const ValueId last = b.AddOperation("bare", bare, {alone}, {n, 600});
  const ValueId mean = b.AddResult("bare.mean", {n}), variance = b.AddResult("bare.variance", {n});
  std::vector<ValueId> outputs = {sum, last, mean, variance};
  for (const auto& results : {given, blocked, residual, deep, rows})
    outputs.insert(outputs.end(), results.begin(), results.end());
  return b.Finish(std::move(outputs));
}

TEST(LayerNormalizationTest, WithParametersThatAreComputedAndStatisticsAsResults) {
  for (cpu::Isa isa : {cpu::Isa::kBaseline, cpu::Isa::kAvx2, cpu::BestIsa()}) {
    if (!cpu::Supports(isa)) continue;
    const Subject subject(NormalizedRows, Options(isa, 1)), two(NormalizedRows, Options(isa, 2));
    const std::vector<Tensor> want = subject.Expected();
    const auto got = subject.Run(kImages, Layout::kNchw, Layout::kNchw);
    const auto again = two.Run(kImages, Layout::kNchw, Layout::kNchw);
    ASSERT_TRUE(got.ok() && again.ok()) << got.status() << again.status();
    ASSERT_EQ(got->size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_LE(RelativeL2((*got)[i], want[i]), 1e-5) << cpu::IsaName(isa) << " output " << i;
      EXPECT_TRUE(BytesOf((*got)[i]) == BytesOf((*again)[i])) << "output " << i;
    }
  }
}

TEST(LayerNormalizationTest, ASumIsAStepOfItsOwnWhereStatisticsAreSaved) {
  const Subject subject(NormalizedRows, Options(cpu::BestIsa(), 1));
  const Explanation plan = subject.model->Explain({}).value();
  EXPECT_EQ(absl::c_count_if(plan.steps, [](const PlanStep& one) { return one.node == "sum"; }), 1);
  EXPECT_EQ(
      absl::c_count_if(plan.steps,
                       [](const PlanStep& one) { return one.primitive == "layer_normalization"; }),
      7);
}

}  // namespace
}  // namespace tilewire::testing
