// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cmath>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/lowering/subject.h"

namespace tilewire::testing {
namespace {

// A table that counts how often it is read.
class CountedFloats final : public network::StoredNumbers {
 public:
  absl::StatusOr<network::HeldFloats> Load() const override {
    ++loads;
    auto floats = std::make_shared<Tensor>(Tensor{1, 2, 3, 4});
    return network::HeldFloats{*floats, floats};
  }
  inline static std::atomic<int> loads = 0;
};

network::Network RowsOfAStoredTable(int64_t n) {
  auto table = std::make_shared<network::Constant>();
  table->name = "table";
  table->dims = {4, 1};
  table->is_float = true;
  table->stored = std::make_shared<const CountedFloats>();
  network::NetworkBuilder b;
  const network::ValueId x = b.Input("x", {n, 3});
  const network::ValueId rows = b.AddOperation("table", network::Literal{table}, {}, {4, 1});
  return b.Finish({b.AddOperation("rows", network::Gather{0}, {rows, x}, {n, 3, 1})});
}

TEST(GatherTest, ATableOfTheFileIsReadOnceForAllPlans) {
  const Subject subject(RowsOfAStoredTable, Options(cpu::BestIsa(), 1));
  const int before = CountedFloats::loads;
  const Tensor indices = {3, -4, 1, 0, 2, 2};
  for (int64_t batch : {1, 2}) {
    const absl::string_view bytes = BytesOf(indices).substr(0, batch * 3 * sizeof(float));
    const auto outputs = subject.model->Run({{{batch, 3}, Layout::kNchw, {bytes}}}, {}, {});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    Tensor want = {4, 1, 2, 1, 3, 3};
    want.resize(batch * 3);
    EXPECT_EQ(FloatsOf((*outputs)[0].bytes), want);
  }
  EXPECT_LE(CountedFloats::loads - before, 1);
}

TEST(GatherTest, IndicesOutsideAreAnErrorOfTheRequest) {
  const Subject subject(network::GatheredByTheRequest, Options(cpu::BestIsa(), 1));
  const auto run = [&](const Tensor& indices) {
    return subject.model->Run({{{1, 3}, Layout::kNchw, {BytesOf(indices)}}}, {}, {}).status();
  };
  EXPECT_EQ(run({0, 3, -4}), absl::OkStatus());
  for (float index : {4.0f, -5.0f, 1e30f, -INFINITY, NAN}) {
    const absl::Status status = run({0, index, 1});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << index;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("node 'rows': index "))
        << index;
  }
}

}  // namespace
}  // namespace tilewire::testing
