// SPDX-License-Identifier: Apache-2.0
//
// The average of parameters, which is evaluated and written in their place, and statistics that are
// taken anew.
#include <algorithm>
#include <cmath>

#include "tests/engine/facade/trained_model.h"

namespace tilewire::testing {
namespace {

TrainingBatch SomeRows(uint32_t seed) { return {{12, 6}, 4, seed}; }

TEST(AverageTrainingTest, WhatIsReadAndWrittenIsTheAverage) {
  constexpr double kDecay = 0.2;
  TrainingSpec spec = CrossEntropy();
  ASSERT_OK_AND_ASSIGN(auto plain, TrainerOf(Perceptron(), spec));
  spec.average = kDecay;
  ASSERT_OK_AND_ASSIGN(auto trainer, TrainerOf(Perceptron(), spec));
  ParametersByName expected = ParametersOf(*plain);
  for (int step = 1; step <= 6; ++step) {
    const TrainingBatch batch = SomeRows(step);
    ASSERT_OK_AND_ASSIGN(const UpdateResult want,
                         plain->Update(batch.inputs(), batch.targets(), {}));
    ASSERT_OK_AND_ASSIGN(const UpdateResult got,
                         trainer->Update(batch.inputs(), batch.targets(), {}));
    EXPECT_EQ(got.loss, want.loss) << "updates are by the parameters, not by their average";
    const double kept = std::min(kDecay, (1.0 + step) / (10.0 + step));
    for (const auto& [name, now] : ParametersOf(*plain)) {
      for (size_t i = 0; i < now.size(); ++i) {
        float& average = expected[name][i];
        average = static_cast<float>(kept * average + (1 - kept) * now[i]);
      }
    }
    for (const auto& [name, average] : ParametersOf(*trainer)) {
      for (size_t i = 0; i < average.size(); ++i)
        EXPECT_NEAR(average[i], expected[name][i], 1e-6) << name << i << " after " << step;
    }
  }
  const std::string path = ::testing::TempDir() + "/averaged.onnx";
  ASSERT_THAT(trainer->WriteModel(path), IsOk());
  ASSERT_OK_AND_ASSIGN(auto again, CreateTrainer(&EngineOfThreads(1), path, CrossEntropy()));
  EXPECT_EQ(ParametersOf(*again), ParametersOf(*trainer));
  const TrainingBatch batch = SomeRows(9);
  ASSERT_OK_AND_ASSIGN(const Evaluation of_file,
                       again->Evaluate(batch.inputs(), batch.targets(), {}));
  ASSERT_OK_AND_ASSIGN(const Evaluation of_average,
                       trainer->Evaluate(batch.inputs(), batch.targets(), {}));
  ASSERT_OK_AND_ASSIGN(const Evaluation of_parameters,
                       plain->Evaluate(batch.inputs(), batch.targets(), {}));
  EXPECT_EQ(of_file.loss, of_average.loss);
  EXPECT_NE(of_file.loss, of_parameters.loss);
}

// The model normalizes its input, so that statistics are the inputs'.
OnnxBuilder NormalizedRows() {
  OnnxBuilder model(13);
  model.Input("x", {-1, 2}).Floats("scale", {2}, {1, 1}).Floats("shift", {2}, {0, 0});
  model.Floats("mean", {2}, {1, 2}).Floats("variance", {2}, {3, 4});
  model.Node("BatchNormalization", {"x", "scale", "shift", "mean", "variance"}, {"y"});
  return model.Output("y");
}

TEST(RecalibrationTest, StatisticsAreTheMeansOfTheBatchesSinceTheLastUpdate) {
  ASSERT_OK_AND_ASSIGN(auto trainer, TrainerOf(NormalizedRows(), CrossEntropy()));
  const std::string first = Bytes(std::vector<float>{1, 0, 2, 4, 6, 2});
  const std::string second = Bytes(std::vector<float>{5, 1, 5, 3, 5, 5});
  const std::string labels = Bytes(std::vector<int64_t>{0, 1, 0});
  const std::vector<InputTensor> batches[] = {{{{3, 2}, Layout::kNchw, {first}}},
                                              {{{3, 2}, Layout::kNchw, {second}}}};
  const auto expect = [&](std::vector<float> mean, std::vector<float> variance) {
    const ParametersByName now = ParametersOf(*trainer, {"mean", "variance"});
    for (int c = 0; c < 2; ++c) {
      EXPECT_NEAR(now.at("mean")[c], mean[c], 1e-6);
      EXPECT_NEAR(now.at("variance")[c], variance[c], 1e-6);
    }
  };
  const ParametersByName before = ParametersOf(*trainer);
  // Means of the batches are 3, 2 and 5, 3; unbiased variances 7, 4 and 0, 4.
  ASSERT_THAT(trainer->Recalibrate(batches[0], {}), IsOk());
  expect({3, 2}, {7, 4});
  ASSERT_THAT(trainer->Recalibrate(batches[1], {}), IsOk());
  expect({4, 2.5f}, {3.5f, 4});
  EXPECT_EQ(before, ParametersOf(*trainer)) << "parameters stay";
  ASSERT_THAT(trainer->Update(batches[0], {{{{3}, Layout::kNchw, {labels}}}}, {}), IsOk());
  ASSERT_THAT(trainer->Recalibrate(batches[1], {}), IsOk());
  expect({5, 3}, {0, 4});
}

TEST(RecalibrationTest, WhatIsRefusedChangesNothing) {
  ASSERT_OK_AND_ASSIGN(auto trainer, TrainerOf(NormalizedRows(), CrossEntropy()));
  const ParametersByName before = ParametersOf(*trainer, {"mean", "variance"});
  const std::string bad = Bytes(std::vector<float>{1, 0, INFINITY, 4});
  EXPECT_THAT(trainer->Recalibrate({{{{2, 2}, Layout::kNchw, {bad}}}}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, "are not finite"));
  EXPECT_THAT(trainer->Recalibrate({}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, "0 inputs given"));
  EXPECT_EQ(before, ParametersOf(*trainer, {"mean", "variance"}));
  ASSERT_OK_AND_ASSIGN(auto without, TrainerOf(Perceptron(), CrossEntropy()));
  EXPECT_THAT(without->Recalibrate(SomeRows(1).inputs(), {}),
              StatusIs(absl::StatusCode::kInvalidArgument, "has no normalization"));
}

}  // namespace
}  // namespace tilewire::testing
