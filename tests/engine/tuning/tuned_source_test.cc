// SPDX-License-Identifier: Apache-2.0
#include "engine/tuning/tuned_source.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/explanation.h"
#include "engine/tuner.h"
#include "engine/tuning/file_hash.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/tuning/tuned_models.h"

namespace tilewire::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// A folder with the model of tests, tuned so that all layers are int8.
class TunedFolder {
 public:
  explicit TunedFolder(const std::string& name) : folder_(fs::path(::testing::TempDir()) / name) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    WriteFile(model(), ResidualModel().Serialize());
    std::vector<std::vector<float>> numbers;
    for (int i = 0; i < 4; ++i) numbers.push_back(MadeUp(kResidualInput, i + 1));
    std::vector<TuningExample> examples;
    for (const auto& one : numbers) examples.push_back({{"x", ViewOf(one, kResidualInput)}});
    TuningSpec spec(ErrorBudget::Parse("l2<=1").value());
    spec.may_stay_exact = false;
    result_ = Tune(&EngineOfTests(), model(), examples, spec).value();
    EXPECT_TRUE(WriteTuning(result_, tuning()).ok());
  }

  std::string model() const { return (folder_ / "model.onnx").string(); }
  std::string tuning() const { return TuningFileOf(model()); }
  const TuningResult& result() const { return result_; }
  tuned::ModelTuning Parsed() const { return tuning::ParseTuning(result_.tuning).value(); }
  void Write(const tuned::ModelTuning& changed) const {
    WriteFile(tuning(), tuning::TextOf(changed));
  }
  absl::StatusOr<std::shared_ptr<const Model>> Load(const LoadOptions& options = {}) const {
    return EngineOfTests().LoadModel(model(), options);
  }

 private:
  fs::path folder_;
  TuningResult result_;
};

TEST(FileHashTest, TellsFilesApart) {
  EXPECT_EQ(tuning::FileHash(""), 0u);
  EXPECT_NE(tuning::FileHash("model a"), tuning::FileHash("model b"));
  EXPECT_NE(tuning::FileHash(std::string(8, '\0')), tuning::FileHash(std::string(9, '\0')));
  // Written down in files: the same in every build.
  EXPECT_EQ(tuning::FileHash("0123456789"), 0x4bb34b26df6db1e8u);
}

TEST(TunedSourceTest, HasTheBitsOfTheQdqFile) {
  const TunedFolder folder("tuned_bits");
  const auto tuned = folder.Load();
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_EQ(FloatsOf(**tuned, kResidualInput),
            FloatsOf(*LoadBytes(folder.result().model), kResidualInput));
  ASSERT_NE((*tuned)->tuning(), nullptr);
  EXPECT_EQ((*tuned)->tuning()->int8_layers, 5);
  EXPECT_EQ((*tuned)->tuning()->exact_layers, 0);
  EXPECT_EQ((*tuned)->tuning()->budget, "l2<=1");
  EXPECT_THAT((*tuned)->tuning()->held_out_error, HasSubstr(" of 2 examples"));
  // More than the exact model holds: the tuned file is in memory.
  EXPECT_TRUE((*tuned)->CheckFiles().ok());
  // Without it, and for the tuner itself, the model is as it was.
  const auto exact = folder.Load({.takes_tuning = false});
  EXPECT_EQ((*exact)->tuning(), nullptr);
  EXPECT_EQ(FloatsOf(**exact, kResidualInput),
            FloatsOf(*LoadBytes(ResidualModel().Serialize()), kResidualInput));
  fs::remove(folder.tuning());
  EXPECT_EQ((*folder.Load())->tuning(), nullptr);
}

TEST(TunedSourceTest, PrecisionsAreThoseOfTheTuningWhateverTheServerPermits) {
  const TunedFolder folder("tuned_precisions");
  tuned::ModelTuning tuning = folder.Parsed();
  tuning.clear_tensor();
  for (tuned::TunedLayer& layer : *tuning.mutable_layer()) layer.set_precision(tuned::EXACT);
  folder.Write(tuning);
  const auto exact = LoadBytes(ResidualModel().Serialize());
  const std::vector<float> numbers = FloatsOf(*exact, kResidualInput);
  const auto tuned = folder.Load({.precision = Precision::kBf16});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_EQ(FloatsOf(**tuned, kResidualInput), numbers);
  // All bf16 are the bits of the model with the precision bf16.
  for (tuned::TunedLayer& layer : *tuning.mutable_layer()) layer.set_precision(tuned::BF16);
  folder.Write(tuning);
  const auto bf16 = folder.Load({.precision = Precision::kBf16, .takes_tuning = false});
  EXPECT_EQ(FloatsOf(**folder.Load(), kResidualInput), FloatsOf(**bf16, kResidualInput));
  EXPECT_EQ((*folder.Load())->tuning()->bf16_layers, 5);
}

TEST(TunedSourceTest, ATuningOfAnotherFileOfTheFolderIsNotOfThisOne) {
  const TunedFolder folder("tuned_siblings");
  const fs::path other = fs::path(folder.model()).parent_path() / "other.onnx";
  WriteFile(other.string(), ResidualModel().Serialize());
  const auto model = EngineOfTests().LoadModel(other.string());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->tuning(), nullptr);
  // Where the other file is gone, it was meant for this one.
  fs::remove(folder.model());
  const auto renamed = EngineOfTests().LoadModel(other.string());
  ASSERT_TRUE(renamed.ok()) << renamed.status();
  EXPECT_NE((*renamed)->tuning(), nullptr);
}

TEST(TunedSourceTest, MessagesHaveTheLine) {
  const TunedFolder folder("tuned_lines");
  const std::string text = folder.result().tuning;
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    const size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    changed.replace(at, from.size(), to);
    WriteFile(folder.tuning(), changed);
    const auto line = std::count(text.begin(), text.begin() + static_cast<int64_t>(at), '\n') + 1;
    const std::string message(CheckTuning(folder.model()).status().message());
    EXPECT_THAT(message, HasSubstr(absl::StrCat("tilewire.tuning: line ", line, ":"))) << to;
    return message;
  };
  const std::string node = folder.Parsed().layer(3).node();
  EXPECT_THAT(changed(absl::StrCat("layer {\n  node: \"", node, "\""), "layer {\n  node: \"cats\""),
              HasSubstr("layer 'cats': the model has no layer"));
  EXPECT_THAT(changed("tensor {\n  name: \"x\"", "tensor {\n  name: \"dogs\""),
              HasSubstr("tensor 'dogs': no node of the model reads"));
  EXPECT_THAT(changed(absl::StrCat("hash: ", folder.Parsed().hash()), "hash: 7"),
              HasSubstr("is of another file"));
  EXPECT_THAT(changed("budget: ", "budgets: "), HasSubstr("budgets"));
  // Unharmed it is of this file; beside none, there is nothing to tell.
  WriteFile(folder.tuning(), text);
  const auto facts = CheckTuning(folder.model());
  ASSERT_TRUE(facts.ok() && facts->has_value()) << facts.status();
  EXPECT_EQ((*facts)->int8_layers, 5);
  fs::remove(folder.tuning());
  EXPECT_EQ(*CheckTuning(folder.model()), std::nullopt);
}

TEST(TunedSourceTest, StepsTellTheirPrecisions) {
  const TunedFolder folder("tuned_steps");
  std::vector<std::string> precisions;
  const auto tuned = (*folder.Load())->Explain({});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  for (const PlanStep& step : tuned->steps) {
    if (step.operations > 0) precisions.push_back(step.precision);
  }
  EXPECT_THAT(precisions, ::testing::Each("int8"));
  EXPECT_EQ(precisions.size(), 5u);
  const auto exact = (*folder.Load({.takes_tuning = false}))->Explain({});
  ASSERT_TRUE(exact.ok()) << exact.status();
  for (const PlanStep& step : exact->steps)
    EXPECT_EQ(step.precision, step.operations > 0 ? "exact" : "") << step.node;
}

TEST(TunedSourceTest, RefusesByName) {
  const TunedFolder folder("tuned_refusals");
  using Tuning = tuned::ModelTuning;
  const float kInfinity = std::numeric_limits<float>::infinity();
  const struct {
    const char* message;
    std::function<void(Tuning*)> change;
  } kCases[] = {
      {"tilewire.tuning: line 3: it is of another file: of 'model.onnx' with",
       [](Tuning* t) { t->set_hash(t->hash() + 1); }},
      {"is of another file", [](Tuning* t) { t->set_size_bytes(1); }},
      {"layer 'nowhere': the model has no layer with known weights of this name",
       [](Tuning* t) { t->mutable_layer(0)->set_node("nowhere"); }},
      {"is there twice", [](Tuning* t) { t->mutable_layer(0)->set_node(t->layer(1).node()); }},
      {"has no precision of this version",
       [](Tuning* t) { t->mutable_layer(2)->clear_precision(); }},
      {"tensor 'nowhere': no node of the model reads one of this name",
       [](Tuning* t) { t->mutable_tensor(0)->set_name("nowhere"); }},
      {"no node of the model reads one of this name",
       [](Tuning* t) { t->mutable_tensor(0)->set_name("w_stem"); }},
      {"is there twice", [](Tuning* t) { *t->add_tensor() = t->tensor(0); }},
      {"the range from nan to", [](Tuning* t) { t->mutable_tensor(0)->set_low(std::nanf("")); }},
      {"to inf is not finite", [&](Tuning* t) { t->mutable_tensor(0)->set_high(kInfinity); }},
      {"does not hold 0", [](Tuning* t) { t->mutable_tensor(0)->set_low(0.5f); }},
      {"its largest_weight is 128; allowed are 1 to 127",
       [](Tuning* t) { t->mutable_layer(1)->set_largest_weight(128); }},
      {"its largest_weight is -1", [](Tuning* t) { t->mutable_layer(1)->set_largest_weight(-1); }},
      {"is int8, and its input 'x' has no range", [](Tuning* t) { t->clear_tensor(); }},
  };
  for (const auto& test : kCases) {
    tuned::ModelTuning tuning = folder.Parsed();
    test.change(&tuning);
    folder.Write(tuning);
    const auto model = folder.Load();
    ASSERT_FALSE(model.ok()) << test.message;
    EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument) << model.status();
    EXPECT_THAT(std::string(model.status().message()), HasSubstr(test.message));
  }
  WriteFile(folder.tuning(), "budget: \"l2<=1\"\nlayers: 3\n");
  EXPECT_THAT(std::string(folder.Load().status().message()), HasSubstr("tilewire.tuning: line 2:"));
  WriteFile(folder.model(), OnnxBuilder(ResidualModel()).Serialize() + std::string(2, '\x7a'));
  folder.Write(folder.Parsed());
  EXPECT_FALSE(folder.Load().ok());  // the model was changed
}

}  // namespace
}  // namespace tilewire::testing
