// SPDX-License-Identifier: Apache-2.0
//
// Models with dropout that learn: by the formula of their masks, with the same bits on any number
// of threads, and with nothing dropped where they are evaluated.
#include <cstring>

#include "engine/training/dropout.h"
#include "tests/engine/facade/trained_model.h"

namespace tilewire::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kExamples = 5, kIn = 6, kHidden = 16, kOut = 4;
constexpr float kRatio = 0.25f;

// y = dropout(x w1^T) w2^T. `inputs` are those of Dropout beside x; none: there is no Dropout.
OnnxBuilder DroppedProducts(const std::vector<std::string>& inputs,
                            const std::vector<onnx::AttributeProto>& attributes = {}) {
  OnnxBuilder model(13);
  model.Input("x", {-1, kIn}).Floats("w1", {kHidden, kIn}).Floats("w2", {kOut, kHidden});
  model.Floats("ratio", {}, {kRatio});
  for (const bool mode : {false, true}) {
    model.Tensor(mode ? "yes" : "no", {}, onnx::TensorProto::BOOL)->add_int32_data(mode);
  }
  model.Node("Gemm", {"x", "w1"}, {"h"}, {Int("transB", 1)});
  if (!inputs.empty()) {
    std::vector<std::string> all = {"h"};
    all.insert(all.end(), inputs.begin(), inputs.end());
    model.Node("Dropout", all, {"d"}, attributes);
  }
  model.Node("Gemm", {inputs.empty() ? "h" : "d", "w2"}, {"y"}, {Int("transB", 1)}).Output("y");
  return model;
}

TrainingSpec Squares(uint64_t seed = 0) {
  TrainingSpec spec = CrossEntropy(0.125);
  spec.losses[0].kind = LossSpec::Kind::kMeanSquaredError;
  spec.seed = seed;
  return spec;
}

struct Examples {
  std::vector<float> x, t;
  std::string inputs, targets;

  explicit Examples(uint32_t seed)
      : x(NumbersFrom(&seed, kExamples * kIn)),
        t(NumbersFrom(&seed, kExamples * kOut)),
        inputs(Bytes(x)),
        targets(Bytes(t)) {}
  std::vector<InputTensor> given() const { return {{{kExamples, kIn}, Layout::kNchw, {inputs}}}; }
  std::vector<InputTensor> wanted() const {
    return {{{kExamples, kOut}, Layout::kNchw, {targets}}};
  }
};

// FNV-1a of the name of the node's output, "d".
constexpr uint32_t kNode = (2166136261u ^ 'd') * 16777619u;

// The two products and their update, in double.
struct PlainProducts {
  std::vector<double> w1, w2;

  // Returns the loss.
  double Update(const Examples& examples, const std::vector<float>& mask, double rate) {
    std::vector<double> h(kExamples * kHidden, 0), dh(kExamples * kHidden, 0), dw1(w1.size(), 0),
        dw2(w2.size(), 0);
    double loss = 0;
    for (int64_t n = 0; n < kExamples; ++n) {
      for (int64_t k = 0; k < kHidden; ++k) {
        double& sum = h[n * kHidden + k];
        for (int64_t i = 0; i < kIn; ++i) sum += examples.x[n * kIn + i] * w1[k * kIn + i];
        sum *= mask[n * kHidden + k];
      }
      for (int64_t o = 0; o < kOut; ++o) {
        double y = 0;
        for (int64_t k = 0; k < kHidden; ++k) y += h[n * kHidden + k] * w2[o * kHidden + k];
        const double off = y - examples.t[n * kOut + o];
        loss += off * off / (kExamples * kOut);
        for (int64_t k = 0; k < kHidden; ++k) {
          const double dy = 2 * off / (kExamples * kOut);
          dw2[o * kHidden + k] += dy * h[n * kHidden + k];
          dh[n * kHidden + k] += dy * w2[o * kHidden + k] * mask[n * kHidden + k];
        }
      }
      for (int64_t k = 0; k < kHidden; ++k) {
        for (int64_t i = 0; i < kIn; ++i)
          dw1[k * kIn + i] += dh[n * kHidden + k] * examples.x[n * kIn + i];
      }
    }
    for (size_t i = 0; i < w1.size(); ++i) w1[i] -= rate * dw1[i];
    for (size_t i = 0; i < w2.size(); ++i) w2[i] -= rate * dw2[i];
    return loss;
  }
};

std::vector<float> MaskOfUpdate(uint64_t seed, int64_t update) {
  std::vector<float> mask(kExamples * kHidden);
  training::FillMask(
      {.ratio = kRatio, .seed = seed, .node = kNode, .update = update, .images = kExamples},
      absl::MakeSpan(mask), threading::Team::Serial());
  return mask;
}

TEST(DropoutTrainingTest, UpdatesAreTheFormulaOfTheirMasks) {
  struct {
    const char* why;
    OnnxBuilder model;
    uint64_t trainers_seed, seed;
  } const cases[] = {
      {"the trainer's seed", DroppedProducts({"ratio"}), 11, 11},
      {"another one", DroppedProducts({"ratio"}), uint64_t{1} << 40, uint64_t{1} << 40},
      {"the node's seed", DroppedProducts({"ratio"}, {Int("seed", 3)}), 11, 3},
      {"training_mode", DroppedProducts({"ratio", "yes"}), 11, 11},
  };
  const Examples examples(1);
  for (const auto& one : cases) {
    SCOPED_TRACE(one.why);
    ASSERT_OK_AND_ASSIGN(auto trainer, TrainerOf(one.model, Squares(one.trainers_seed)));
    PlainProducts plain;
    const ParametersByName before = ParametersOf(*trainer);
    plain.w1.assign(before.at("w1").begin(), before.at("w1").end());
    plain.w2.assign(before.at("w2").begin(), before.at("w2").end());
    for (int64_t update = 0; update < 4; ++update) {
      const double loss = plain.Update(examples, MaskOfUpdate(one.seed, update), 0.125);
      ASSERT_OK_AND_ASSIGN(const UpdateResult result,
                           trainer->Update(examples.given(), examples.wanted(), {}));
      EXPECT_NEAR(result.loss, loss, 1e-5 * loss) << "update " << update;
    }
    const ParametersByName after = ParametersOf(*trainer);
    for (size_t i = 0; i < plain.w1.size(); ++i)
      EXPECT_NEAR(after.at("w1")[i], plain.w1[i], 1e-5) << i;
    for (size_t i = 0; i < plain.w2.size(); ++i)
      EXPECT_NEAR(after.at("w2")[i], plain.w2[i], 1e-5) << i;
  }
}

ParametersByName AfterUpdates(const OnnxBuilder& model, uint64_t seed, int threads = 1) {
  const auto trainer = TrainerOf(model, Squares(seed), threads);
  EXPECT_THAT(trainer, IsOk());
  for (uint32_t i = 0; i < 5; ++i) {
    const Examples examples(i + 1);
    EXPECT_THAT((*trainer)->Update(examples.given(), examples.wanted(), {}), IsOk());
  }
  return ParametersOf(**trainer);
}

TEST(DropoutTrainingTest, BitsDependOnTheSeedAndNotOnThreads) {
  const OnnxBuilder model = DroppedProducts({"ratio"});
  const ParametersByName first = AfterUpdates(model, 1);
  for (const int threads : {1, 2, 7}) EXPECT_EQ(first, AfterUpdates(model, 1, threads));
  EXPECT_NE(first, AfterUpdates(model, 2));
  const OnnxBuilder seeded = DroppedProducts({"ratio"}, {Int("seed", 1)});
  EXPECT_EQ(first, AfterUpdates(seeded, 2));
}

TEST(DropoutTrainingTest, WithoutTrainingModeNothingIsDropped) {
  EXPECT_EQ(AfterUpdates(DroppedProducts({"ratio", "no"}), 1),
            AfterUpdates(DroppedProducts({}), 1));
}

TEST(DropoutTrainingTest, EvaluationsDropNothing) {
  const Examples examples(4);
  ASSERT_OK_AND_ASSIGN(auto plain, TrainerOf(DroppedProducts({}), Squares()));
  ASSERT_OK_AND_ASSIGN(const Evaluation want,
                       plain->Evaluate(examples.given(), examples.wanted(), {}));
  for (const auto& inputs : {std::vector<std::string>{"ratio"}, {"ratio", "yes"}}) {
    ASSERT_OK_AND_ASSIGN(auto trainer, TrainerOf(DroppedProducts(inputs), Squares()));
    ASSERT_OK_AND_ASSIGN(const Evaluation got,
                         trainer->Evaluate(examples.given(), examples.wanted(), {}));
    EXPECT_EQ(got.loss, want.loss);
    EXPECT_EQ(std::memcmp(got.outputs[0].bytes.data(), want.outputs[0].bytes.data(),
                          kExamples * kOut * sizeof(float)),
              0);
  }
}

// A stopped update draws the same masks when it is tried again.
TEST(DropoutTrainingTest, AStoppedUpdateLeavesNoTrace) {
  const Examples examples(2);
  ASSERT_OK_AND_ASSIGN(auto trainer, TrainerOf(DroppedProducts({"ratio"}), Squares()));
  ASSERT_OK_AND_ASSIGN(auto other, TrainerOf(DroppedProducts({"ratio"}), Squares()));
  RunOptions stopped;
  stopped.interrupted = [] { return absl::CancelledError("stopped"); };
  EXPECT_THAT(trainer->Update(examples.given(), examples.wanted(), stopped),
              StatusIs(absl::StatusCode::kCancelled, "stopped"));
  for (Trainer* one : {trainer.get(), other.get()})
    ASSERT_THAT(one->Update(examples.given(), examples.wanted(), {}), IsOk());
  EXPECT_EQ(ParametersOf(*trainer), ParametersOf(*other));
}

TEST(DropoutTrainingTest, ANoteSaysThatTheFileDropsInInference) {
  for (const bool is_of_file : {false, true}) {
    std::vector<std::string> inputs = {"ratio"};
    if (is_of_file) inputs.emplace_back("yes");
    ASSERT_OK_AND_ASSIGN(auto trainer, TrainerOf(DroppedProducts(inputs), Squares()));
    const auto of_serving = NotesOf(*trainer, TrainingNote::Kind::kServing);
    if (is_of_file) {
      EXPECT_THAT(of_serving, ElementsAre(HasSubstr("training_mode is true in 1 Dropout node")));
    } else {
      EXPECT_THAT(of_serving, IsEmpty());
    }
    EXPECT_THAT(NotesOf(*trainer, TrainingNote::Kind::kTraining), IsEmpty());
  }
}

}  // namespace
}  // namespace tilewire::testing
