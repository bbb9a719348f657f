// SPDX-License-Identifier: Apache-2.0
//
// Every network, under every level of instruction set: against the oracle, and the same bits for
// every batch size, number of threads, layout of the request and concurrency.
#include <algorithm>
#include <atomic>
#include <map>
#include <thread>
#include <tuple>

#include "engine/facade/loaded_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/runtime/interpreter.h"
#include "tests/engine/runtime/network_builder.h"
#include "tests/engine/runtime/networks.h"
#include "tests/support/float_tensors.h"

namespace tilewire {
namespace {

using testing::BytesOf;
using testing::ChannelsLast;
using testing::FloatsOf;
using testing::RelativeL2;
using Tensor = std::vector<float>;
constexpr int64_t kBatch = 5;  // of which others are prefixes

// One model and the inputs of kBatch images.
struct Subject {
  Subject(graph::Network (*make)(int64_t), const EngineOptions& options)
      : shared(std::make_shared<EngineShared>(options)),
        network(make(kBatch)),
        model(LoadedModel::Create(graph::HandMadeModel(make), shared).value()) {
    for (graph::ValueId input : network.inputs) {
      const graph::Value& value = network.values[input];
      inputs.push_back(graph::PseudoRandom(value.name, *ElementCount(value.dims), -1, 1));
    }
  }

  absl::StatusOr<std::vector<Tensor>> Run(int64_t batch, Layout in, Layout out) const {
    std::vector<Tensor> bytes;
    std::vector<InputTensor> tensors;
    for (size_t i = 0; i < inputs.size(); ++i) {
      Dims dims = network.values[network.inputs[i]].dims;
      dims[0] = batch;
      Tensor images(inputs[i].begin(), inputs[i].begin() + inputs[i].size() / kBatch * batch);
      bytes.push_back(in == Layout::kNhwc ? ChannelsLast(images, dims) : std::move(images));
      const absl::string_view all = BytesOf(bytes.back());
      tensors.push_back({dims, in, {all}});  // two images come in one piece, others in two
      if (batch != 2) tensors.back().pieces = {all.substr(0, 37), all.substr(37)};
    }
    std::vector<OutputRequest> requests;
    for (size_t i = 0; i < network.outputs.size(); ++i)
      requests.push_back({static_cast<int>(i), out});
    absl::StatusOr<std::vector<OutputTensor>> outputs = model->Run(tensors, requests, {});
    if (!outputs.ok()) return outputs.status();
    std::vector<Tensor> results;
    for (const OutputTensor& output : *outputs) results.push_back(FloatsOf(output.bytes));
    return results;
  }

  std::shared_ptr<EngineShared> shared;
  graph::Network network;
  std::shared_ptr<const Model> model;
  std::vector<Tensor> inputs;
};

EngineOptions Options(cpu::Isa isa, int threads) {
  return {.max_isa = isa, .threads = threads, .threads_per_request = threads};
}

Tensor FirstImages(const Tensor& all, int64_t batch) {
  return Tensor(all.begin(), all.begin() + all.size() / kBatch * batch);
}

using Parameters = std::tuple<graph::NetworkCase, cpu::Isa>;

class ModelTest : public ::testing::TestWithParam<Parameters> {
 protected:
  static graph::NetworkCase Case() { return std::get<0>(GetParam()); }
  static cpu::Isa Isa() { return std::get<1>(GetParam()); }
  void SetUp() override {
    if (!cpu::Supports(Isa())) GTEST_SKIP() << "the CPU lacks " << cpu::IsaName(Isa());
  }
};

TEST_P(ModelTest, MatchesOracleWithTheSameBitsForAnyBatchAndLayout) {
  const Subject subject(Case().make, Options(Isa(), 1));
  const std::vector<Tensor> want = graph::Interpret(subject.network, subject.inputs);
  const auto whole = subject.Run(kBatch, Layout::kNchw, Layout::kNchw);
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

TEST_P(ModelTest, TheSameBitsForAnyThreadsAndUnderConcurrency) {
  const Subject one(Case().make, Options(Isa(), 1)), two(Case().make, Options(Isa(), 2));
  std::map<int64_t, std::vector<Tensor>> want;
  for (int64_t batch : {1, 2, 5})
    want[batch] = one.Run(batch, Layout::kNchw, Layout::kNchw).value();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> clients;
  for (int client = 0; client < 4; ++client) {
    clients.emplace_back([&, client] {
      constexpr int64_t kBatches[] = {1, 2, 5};
      for (int run = 0; run < 6; ++run) {
        const int64_t batch = kBatches[(client + run) % 3];
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

INSTANTIATE_TEST_SUITE_P(Networks, ModelTest,
                         ::testing::Combine(::testing::ValuesIn(graph::NetworkCases().begin(),
                                                                graph::NetworkCases().end()),
                                            ::testing::Values(cpu::Isa::kBaseline, cpu::Isa::kAvx2,
                                                              cpu::BestIsa())),
                         [](const ::testing::TestParamInfo<Parameters>& info) {
                           return std::string(std::get<0>(info.param).name) + "_" +
                                  std::to_string(info.index % 3) + "_" +
                                  std::string(cpu::IsaName(std::get<1>(info.param)));
                         });

class ModelErrorsTest : public ::testing::Test {
 protected:
  const Subject subject_{graph::NetworkCases()[0].make, Options(cpu::BestIsa(), 1)};
  const Tensor image_ = Tensor(3 * 9 * 7, 0.5f);

  absl::Status RunOn(std::vector<InputTensor> inputs, std::vector<OutputRequest> outputs = {},
                     RunOptions options = {}) {
    return subject_.model->Run(inputs, outputs, options).status();
  }
};

TEST_F(ModelErrorsTest, WrongRequestsAreInvalidArguments) {
  const absl::string_view bytes = BytesOf(image_);
  EXPECT_TRUE(RunOn({{{1, 3, 9, 7}, Layout::kNchw, {bytes}}}).ok());
  const std::vector<std::vector<InputTensor>> wrong = {
      {},
      {{{1, 3, 9, 7}, Layout::kNchw, {bytes}}, {{1, 3, 9, 7}, Layout::kNchw, {bytes}}},
      {{{1, 3, 7, 9}, Layout::kNchw, {bytes}}},
      {{{3, 9, 7}, Layout::kNchw, {bytes}}},
      {{{0, 3, 9, 7}, Layout::kNchw, {}}},
      {{{-1, 3, 9, 7}, Layout::kNchw, {bytes}}},
      {{{int64_t{1} << 62, 3, 9, 7}, Layout::kNchw, {bytes}}},
      {{{2, 3, 9, 7}, Layout::kNchw, {bytes}}},
      {{{1, 3, 9, 7}, Layout::kNchw, {bytes.substr(1)}}},
      {{{1, 3, 9, 7}, Layout::kNchw, {bytes, "x"}}},
  };
  for (size_t i = 0; i < wrong.size(); ++i) {
    EXPECT_EQ(RunOn(wrong[i]).code(), absl::StatusCode::kInvalidArgument) << i;
  }
  for (int index : {-1, 1}) {
    EXPECT_EQ(RunOn({{{1, 3, 9, 7}, Layout::kNchw, {bytes}}}, {{index}}).code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(ModelErrorsTest, InterruptionEndsTheRunBetweenSteps) {
  int asked = 0;
  const RunOptions options{.interrupted = [&] {
    return ++asked < 3 ? absl::OkStatus() : absl::CancelledError("the client left");
  }};
  EXPECT_EQ(RunOn({{{1, 3, 9, 7}, Layout::kNchw, {BytesOf(image_)}}}, {}, options),
            absl::CancelledError("the client left"));
  EXPECT_EQ(asked, 3);
}

// Steps that were cut short computed nothing: the question after the last one must be asked.
TEST_F(ModelErrorsTest, AfterTheLastStepTheRunAsksOnceMore) {
  int all = 0, asked = 0;
  const std::vector<InputTensor> inputs = {{{1, 3, 9, 7}, Layout::kNchw, {BytesOf(image_)}}};
  EXPECT_TRUE(RunOn(inputs, {},
                    {.interrupted =
                         [&] {
                           ++all;
                           return absl::OkStatus();
                         }})
                  .ok());
  const std::atomic<bool> stop = true;
  const RunOptions options{
      .interrupted =
          [&] { return ++asked < all ? absl::OkStatus() : absl::CancelledError("left"); },
      .stop = &stop};
  EXPECT_EQ(RunOn(inputs, {}, options), absl::CancelledError("left"));
  EXPECT_EQ(asked, all);
}

TEST_F(ModelErrorsTest, AnAnswerBeyondTheLimitIsRefusedBeforeAnyWork) {
  int asked = 0;
  const RunOptions options{.interrupted =
                               [&] {
                                 ++asked;
                                 return absl::OkStatus();
                               },
                           .max_output_bytes = 8};
  EXPECT_EQ(RunOn({{{1, 3, 9, 7}, Layout::kNchw, {BytesOf(image_)}}}, {}, options).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(asked, 0);
}

TEST_F(ModelErrorsTest, ExplainNamesEveryStepWithItsBytesAndFusedOps) {
  const auto plan = subject_.model->Explain({.batch = 2});
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::map<std::string, PlanStep> steps;
  for (const PlanStep& step : plan->steps) steps[step.node] = step;
  for (const char* node : {"input x", "stem", "one", "two", "three", "output three.out"})
    EXPECT_TRUE(steps.count(node)) << node;
  const PlanStep& two = steps["two"];
  EXPECT_EQ(two.primitive, "convolution");
  EXPECT_EQ(two.fused, "relu:0");
  EXPECT_EQ(two.operations, 2 * 2 * 20 * 20 * 9 * 7) << "1x1, 20 channels to 20, 2 images of 9x7";
  ASSERT_EQ(two.tensors.size(), 4) << "source, weights, bias, destination";
  EXPECT_THAT(two.tensors[0].layout, ::testing::StartsWith("f32:2x20x9x7:"));
  EXPECT_GE(two.tensors[0].bytes, 2 * 20 * 9 * 7 * 4);
  EXPECT_GT(plan->activations_bytes, 0);
  EXPECT_EQ(plan->run, absl::ZeroDuration());
}

TEST_F(ModelErrorsTest, ExplainTimesEveryStepWhereRunsAreAskedFor) {
  const auto plan = subject_.model->Explain({.dims = {{3, 3, 9, 7}}, .runs = 3});
  ASSERT_TRUE(plan.ok()) << plan.status();
  absl::Duration sum;
  for (const PlanStep& step : plan->steps) {
    sum += step.time;
    if (step.primitive.empty()) continue;
    EXPECT_GT(step.time, absl::ZeroDuration()) << step.node;
  }
  EXPECT_GT(plan->run, absl::ZeroDuration());
  EXPECT_LE(sum, 3 * plan->run) << "each median is at most the time of some run";
  EXPECT_EQ(plan->threads, 1);
}

TEST_F(ModelErrorsTest, ExplainRefusesWhatARunWould) {
  const auto code = [this](const ExplainOptions& options) {
    return subject_.model->Explain(options).status().code();
  };
  EXPECT_EQ(code({.batch = 0}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.dims = {{1, 3, 7, 9}}}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.dims = {{1, 3, 9, 7}, {1}}}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.batch = 1, .limits = {.max_output_bytes = 755}}),
            absl::StatusCode::kResourceExhausted)
      << "the input has 756";
  EXPECT_EQ(code({.runs = 1, .limits = {.max_output_bytes = 800}}),
            absl::StatusCode::kResourceExhausted)
      << "the output has 5040";
  EXPECT_EQ(code({.batch = int64_t{1} << 61}), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(
      code({.runs = 1, .limits = {.interrupted = [] { return absl::CancelledError("left"); }}}),
      absl::StatusCode::kCancelled);
}

TEST(FewChannelsTest, StayInBlocks) {
  const auto cases = graph::NetworkCases();
  const auto found = std::find_if(cases.begin(), cases.end(), [](const graph::NetworkCase& one) {
    return absl::string_view(one.name) == "FewChannels";
  });
  for (const cpu::Isa isa : {cpu::Isa::kAvx2, cpu::Isa::kAvx512}) {
    if (!cpu::Supports(isa)) continue;
    const Explanation plan = Subject(found->make, Options(isa, 1)).model->Explain({}).value();
    for (const PlanStep& step : plan.steps)
      EXPECT_NE(step.remark, "another layout is wanted") << step.node;
  }
}

TEST(ComputedWeightsTest, ArePackedInEveryRunAndThePlanSaysSo) {
  const auto cases = graph::NetworkCases();
  const auto found = std::find_if(cases.begin(), cases.end(), [](const graph::NetworkCase& one) {
    return absl::string_view(one.name) == "ComputedWeights";
  });
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
  const Subject subject(found->make, Options(cpu::Isa::kAvx2, 1));
  const Explanation plan = subject.model->Explain({}).value();
  int packed = 0;
  for (const PlanStep& step : plan.steps)
    packed += step.remark == "packs weights that are computed, in every run";
  EXPECT_EQ(packed, 5) << "one each for dense, grouped, single, one and two";
}

// A table that tells how often it was read.
class CountedFloats final : public graph::StoredFloats {
 public:
  absl::StatusOr<graph::HeldFloats> Load() const override {
    ++loads;
    auto floats = std::make_shared<Tensor>(Tensor{1, 2, 3, 4});
    return graph::HeldFloats{*floats, floats};
  }
  inline static std::atomic<int> loads = 0;
};

graph::Network RowsOfAStoredTable(int64_t n) {
  auto table = std::make_shared<graph::Constant>();
  table->name = "table";
  table->dims = {4, 1};
  table->is_float = true;
  table->stored = std::make_shared<const CountedFloats>();
  graph::NetworkBuilder b;
  const graph::ValueId x = b.Input("x", {n, 3});
  const graph::ValueId rows = b.AddOperation("table", graph::Literal{table}, {}, {4, 1});
  return b.Finish({b.AddOperation("rows", graph::Gather{0}, {rows, x}, {n, 3, 1})});
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
  const Subject subject(graph::GatheredByTheRequest, Options(cpu::BestIsa(), 1));
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

// What a plan does for its concatenations: steps of their own, and copied parts.
std::pair<int, int> ConcatsAndCopies(absl::string_view network, int64_t batch) {
  const auto cases = graph::NetworkCases();
  const auto found = std::find_if(cases.begin(), cases.end(), [&](const graph::NetworkCase& one) {
    return absl::string_view(one.name) == network;
  });
  const Subject subject(found->make, Options(cpu::BestIsa(), 1));
  int concats = 0, copies = 0;
  const Explanation plan = subject.model->Explain({.batch = batch}).value();
  for (const PlanStep& step : plan.steps) {
    concats += step.primitive == "concat";
    copies += step.remark == "copies a part of a concatenation";
  }
  return {concats, copies};
}

// The sources are written where they belong; what is the request's, an answer's, or there already
// is copied.
TEST(ConcatTest, IsNoStepAtAnyBatch) {
  for (int64_t batch : {1, 2}) {
    EXPECT_EQ(ConcatsAndCopies("ConcatsOfWholeBlocks", batch),
              batch == 1 ? std::pair(0, 4) : std::pair(1, 3))
        << "second, x and third again; end is an output, and tanh takes dense tensors only";
    EXPECT_EQ(ConcatsAndCopies("ConcatsOfSeveralImages", batch), std::pair(0, 0));
  }
}

// Winograd's convolutions pool in passing, the others leave it to a step of its own: the same bits.
TEST(FusedPoolingTest, IsOneStepBehindWinogradAndGivesTheBitsOfTwo) {
  for (const cpu::Isa isa : {cpu::Isa::kBaseline, cpu::Isa::kAvx2, cpu::Isa::kAvx512}) {
    if (!cpu::Supports(isa)) continue;
    const Subject fused(graph::PooledConvolutions, Options(isa, 1));
    const Subject apart(graph::ConvolutionsAndPoolings, Options(isa, 1));
    std::map<std::string, PlanStep> steps;
    const Explanation plan = fused.model->Explain({}).value();
    for (const PlanStep& step : plan.steps) steps[step.node] = step;
    const bool has_winograd = isa != cpu::Isa::kBaseline;
    EXPECT_EQ(steps.count("winograd.pool"), has_winograd ? 0 : 1);
    EXPECT_EQ(steps["winograd"].fused, has_winograd ? "relu:0;max_pooling:2x2" : "relu:0");
    EXPECT_EQ(steps["winograd"].operations, 2 * 40 * 16 * 9 * (has_winograd ? 28 * 30 : 29 * 31));
    for (const char* node : {"full.pool", "one.pool", "small.pool"})
      EXPECT_EQ(steps[node].primitive, "pooling") << node;
    const auto got = fused.Run(kBatch, Layout::kNchw, Layout::kNchw);
    const auto want = apart.Run(kBatch, Layout::kNchw, Layout::kNchw);
    ASSERT_TRUE(got.ok() && want.ok()) << got.status() << want.status();
    for (size_t i = 0; i < want->size(); ++i)
      EXPECT_TRUE(BytesOf((*got)[i]) == BytesOf((*want)[i])) << cpu::IsaName(isa) << ", " << i;
  }
}

TEST(QuantizedModelTest, FoldedOperationsAreAtMostOneUnitOff) {
  for (const cpu::Isa isa :
       {cpu::Isa::kBaseline, cpu::Isa::kAvx2, cpu::Isa::kAvx512, cpu::Isa::kAvx512Vnni}) {
    if (!cpu::Supports(isa)) continue;
    const Subject subject(graph::QuantizedOrdinary, Options(isa, 1));
    const std::vector<Tensor> want = graph::Interpret(subject.network, subject.inputs);
    const std::vector<Tensor> got = subject.Run(kBatch, Layout::kNchw, Layout::kNchw).value();
    for (size_t i = 0; i < want.size(); ++i) {
      int64_t off = 0;
      for (size_t k = 0; k < want[i].size(); ++k) {
        const float units = std::abs(got[i][k] - want[i][k]) / graph::kOrdinaryStep;
        ASSERT_LE(units, 1.01f) << cpu::IsaName(isa) << ", output " << i;
        off += units > 0.5f;
      }
      // Only what lies half-way between two integers.
      EXPECT_LE(off, static_cast<int64_t>(want[i].size()) / 100) << "output " << i;
    }
  }
}

// The first sum's addend is read by the same convolution and must be copied; the second's is
// written over.
TEST_F(ModelErrorsTest, FusedSumsCopyOnlyWhereTheyMust) {
  int copies = 0;
  const Explanation plan = subject_.model->Explain({}).value();
  for (const PlanStep& step : plan.steps) {
    if (step.remark.find("copies the addend") == std::string::npos) continue;
    EXPECT_EQ(step.node, "one");
    ++copies;
  }
  EXPECT_EQ(copies, 1);
}

}  // namespace
}  // namespace tilewire
