// SPDX-License-Identifier: Apache-2.0
//
// Every network, under every level of instruction set: against the oracle, and the same bits for
// every batch size, number of threads, layout of the request and concurrency.
#include <atomic>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <variant>

#include "gtest/gtest.h"
#include "tests/engine/lowering/subject.h"

namespace tilewire::testing {
namespace {

Tensor FirstImages(const Tensor& all, int64_t batch) {
  return Tensor(all.begin(), all.begin() + all.size() / kImages * batch);
}

using Parameters = std::tuple<network::NetworkCase, cpu::Isa>;

class NetworkTest : public ::testing::TestWithParam<Parameters> {
 protected:
  static network::NetworkCase Case() { return std::get<0>(GetParam()); }
  static cpu::Isa Isa() { return std::get<1>(GetParam()); }
  void SetUp() override {
    if (!cpu::Supports(Isa())) GTEST_SKIP() << "the CPU lacks " << cpu::IsaName(Isa());
  }
};

TEST_P(NetworkTest, MatchesOracleWithTheSameBitsForAnyBatchAndLayout) {
  const Subject subject(Case().make, Options(Isa(), 1));
  const std::vector<Tensor> want = subject.Expected();
  const auto whole = subject.Run(kImages, Layout::kNchw, Layout::kNchw);
  ASSERT_TRUE(whole.ok()) << whole.status();
  ASSERT_EQ(whole->size(), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_LE(RelativeL2((*whole)[i], want[i]), 1e-5) << "output " << i;

  for (int64_t batch : {1, 2, 5}) {
    for (Layout in : {Layout::kNchw, Layout::kNhwc}) {
      for (Layout out : {Layout::kNchw, Layout::kNhwc}) {
        const auto got = subject.Run(batch, in, out);
        ASSERT_TRUE(got.ok()) << got.status();
        for (size_t i = 0; i < want.size(); ++i) {
          Dims dims = subject.network.values[subject.network.outputs[i]].dims;
          dims[0] = batch;
          Tensor expected = FirstImages((*whole)[i], batch);
          if (out == Layout::kNhwc) expected = ChannelsLast(expected, dims);
          EXPECT_TRUE(BytesOf((*got)[i]) == BytesOf(expected))
              << "output " << i << ", batch " << batch << ", layouts " << int(in) << int(out);
        }
      }
    }
  }
}

TEST_P(NetworkTest, TheSameBitsForAnyThreadsAndUnderConcurrency) {
  const Subject one(Case().make, Options(Isa(), 1)), two(Case().make, Options(Isa(), 2));
  std::map<int64_t, std::vector<Tensor>> want;
  for (int64_t batch : {1, 2, 5})
    want[batch] = one.Run(batch, Layout::kNchw, Layout::kNchw).value();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> clients;
  for (int client = 0; client < 4; ++client) {
    clients.emplace_back([&, client] {
      constexpr int64_t kImageses[] = {1, 2, 5};
      for (int run = 0; run < 6; ++run) {
        const int64_t batch = kImageses[(client + run) % 3];
        const auto got = two.Run(batch, run % 2 ? Layout::kNchw : Layout::kNhwc, Layout::kNchw);
        if (!got.ok() || got->size() != want[batch].size()) {
          ++wrong;
          continue;
        }
        for (size_t i = 0; i < got->size(); ++i)
          wrong += BytesOf((*got)[i]) != BytesOf(want[batch][i]);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(wrong, 0);
}

TEST(NetworkCasesTest, EveryOperationIsInSome) {
  std::set<size_t> kinds;
  for (const network::NetworkCase& one : network::NetworkCases()) {
    for (const network::Operation& operation : one.make(1).operations)
      kinds.insert(operation.params.index());
  }
  for (size_t kind = 0; kind < std::variant_size_v<network::OperationParams>; ++kind)
    EXPECT_EQ(kinds.count(kind), 1) << "operation " << kind << " of network::OperationParams";
}

// The sets below the best one whose code differs, and that one.
std::vector<cpu::Isa> InstructionSets() {
  std::vector<cpu::Isa> sets = {cpu::Isa::kBaseline, cpu::Isa::kAvx2};
  if (cpu::Supports(cpu::Isa::kAmx)) sets.push_back(cpu::Isa::kAvx512Vnni);
  sets.push_back(cpu::BestIsa());
  return sets;
}

INSTANTIATE_TEST_SUITE_P(Networks, NetworkTest,
                         ::testing::Combine(::testing::ValuesIn(network::NetworkCases().begin(),
                                                                network::NetworkCases().end()),
                                            ::testing::ValuesIn(InstructionSets())),
                         [](const ::testing::TestParamInfo<Parameters>& info) {
                           return std::string(std::get<0>(info.param).name) + "_" +
                                  std::to_string(info.index % InstructionSets().size()) + "_" +
                                  std::string(cpu::IsaName(std::get<1>(info.param)));
                         });

}  // namespace
}  // namespace tilewire::testing
