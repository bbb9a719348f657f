// SPDX-License-Identifier: Apache-2.0
//
// Rows of layers that a tuning names, and their choice by measurement.
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/cpu/isa.h"
#include "engine/tuner.h"
#include "engine/tuning/calibration.h"
#include "engine/tuning/conversions.h"
#include "engine/tuning/file_hash.h"
#include "engine/tuning/row_choice.h"
#include "engine/tuning/tuned_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/tuning/tuned_models.h"
#include "tests/engine/tuning/tuned_results.h"

namespace tilewire::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr char kReference[] = "convolution/reference";  // takes every convolution on every CPU

// A folder with a model, and a tuning of it in which all layers are exact.
class RowsFolder {
 public:
  explicit RowsFolder(const std::string& name, std::string bytes = ResidualModel().Serialize())
      : folder_(fs::path(::testing::TempDir()) / name), bytes_(std::move(bytes)) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    WriteFile(model(), bytes_);
  }

  std::string model() const { return (folder_ / "model.onnx").string(); }

  tuned::ModelTuning Tuning(const std::map<std::string, std::string>& rows) const {
    tuned::ModelTuning tuning;
    tuning.set_file("model.onnx");
    tuning.set_size_bytes(static_cast<int64_t>(bytes_.size()));
    tuning.set_hash(tuning::FileHash(bytes_));
    for (const std::string& feature : cpu::FeatureNames(cpu::BestIsa()))
      tuning.add_cpu_features(feature);
    for (const auto& [node, row] : rows) {
      tuned::TunedLayer* layer = tuning.add_layer();
      layer->set_node(node);
      layer->set_precision(tuned::EXACT);
      layer->set_row(row);
    }
    return tuning;
  }

  absl::StatusOr<std::shared_ptr<const Model>> LoadWith(const tuned::ModelTuning& tuning) const {
    WriteFile(TuningFileOf(model()), tuning::TextOf(tuning));
    return EngineOfTests().LoadModel(model());
  }

 private:
  fs::path folder_;
  std::string bytes_;
};

// The implementation of each node's last step.
std::map<std::string, std::string> RowsOf(const Model& model) {
  std::map<std::string, std::string> rows;
  const auto explanation = model.Explain({});
  EXPECT_TRUE(explanation.ok()) << explanation.status();
  for (const PlanStep& step : explanation->steps) rows[step.node] = step.implementation;
  return rows;
}

TEST(RowsTest, AreThoseOfTheTuningAndOtherLayersAreAsBefore) {
  const RowsFolder folder("rows_taken");
  auto rows = RowsOf(*LoadBytes(ResidualModel().Serialize()));
  ASSERT_EQ(rows.count("node_first"), 1u);
  const auto tuned = folder.LoadWith(folder.Tuning({{"node_first", kReference}}));
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  const auto tuned_rows = RowsOf(**tuned);
  EXPECT_EQ(tuned_rows.at("node_first"), kReference);
  EXPECT_EQ(tuned_rows.at("node_second"), rows.at("node_second"));
  EXPECT_EQ(tuned_rows.at("node_y"), rows.at("node_y"));
  EXPECT_EQ((*tuned)->tuning()->rows, 1);
  // The bits do not depend on the batch.
  Dims three = kResidualInput;
  three[0] = 3;
  const std::vector<float> alone = FloatsOf(**tuned, kResidualInput);
  const std::vector<float> first = FloatsOf(**tuned, three);
  ASSERT_GE(first.size(), alone.size());
  EXPECT_EQ(std::vector<float>(first.begin(), first.begin() + alone.size()), alone);
}

TEST(RowsTest, OfAnotherCpuAreChosenByEstimate) {
  const RowsFolder folder("rows_elsewhere");
  tuned::ModelTuning tuning =
      folder.Tuning({{"node_first", kReference}, {"node_second", "convolution/of_the_future"}});
  tuning.add_cpu_features("and_more");
  const auto tuned = folder.LoadWith(tuning);
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_EQ(RowsOf(**tuned), RowsOf(*LoadBytes(ResidualModel().Serialize())));
}

TEST(RowsTest, RefusesByName) {
  const RowsFolder folder("rows_refused");
  const struct {
    std::string node, row, message;
  } kCases[] = {
      {"node_first", "convolution/of_the_future",
       "tilewire.tuning: node 'node_first': the row 'convolution/of_the_future' that it is to take "
       "does not fit: no implementation 'convolution/of_the_future'"},
      {"node_first", "pooling/reference", "no implementation 'pooling/reference'"},
      {"node_first", "convolution/reference_backward",
       "does not fit: no implementation takes this descriptor"},
      {"node_y", kReference, "no implementation 'convolution/reference'"},
      {"nowhere", kReference, "the model has no layer with known weights of this name"},
  };
  for (const auto& test : kCases) {
    const auto model = folder.LoadWith(folder.Tuning({{test.node, test.row}}));
    ASSERT_FALSE(model.ok()) << test.message;
    EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument) << model.status();
    EXPECT_THAT(std::string(model.status().message()), HasSubstr(test.message));
  }
}

TEST(RowsTest, RefusesExactLayersWhoseNodesHaveNoNameOfTheirOwn) {
  onnx::ModelProto proto;
  ASSERT_TRUE(proto.ParseFromString(ResidualModel().Serialize()));
  for (onnx::NodeProto& node : *proto.mutable_graph()->mutable_node()) node.clear_name();
  const RowsFolder folder("rows_without_names", proto.SerializeAsString());
  const auto model = folder.LoadWith(folder.Tuning({{"first", kReference}}));
  EXPECT_THAT(std::string(model.status().message()),
              HasSubstr("layer 'first' has the row 'convolution/reference', and its node has no "
                        "name of its own"));
}

TEST(RowsTest, RefusesModelsOfOpenSizes) {
  OnnxBuilder open(13);
  open.Input("x", {-1, 8, -1, -1}).Floats("w", {16, 8, 1, 1});
  open.Node("Conv", {"x", "w"}, {"y"}).Output("y");
  const RowsFolder folder("rows_of_open_sizes", open.Serialize());
  const auto model = folder.LoadWith(folder.Tuning({{"node_y", kReference}}));
  EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument) << model.status();
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("leave more open than the batch"));
}

// With AVX2 alone, a convolution or product of integers has one row that is not the reference:
// there is none to try beside it. CPUs that have more take the rows of AVX2, too.
bool HasRowsOfIntegersToTry() {
  return cpu::BestIsa().Includes(cpu::Isa::kAvx512) || cpu::BestIsa().Includes(cpu::Isa::kAvx2Vnni);
}

class RowChoiceTest : public ::testing::Test {
 protected:
  RowChoiceTest() : spec_(ErrorBudget::Parse("l2<=1e-2").value()) {
    for (int i = 0; i < 4; ++i) numbers_.push_back(MadeUp(kResidualInput, i + 1));
    for (const auto& one : numbers_) examples_.push_back({{"x", ViewOf(one, kResidualInput)}});
    spec_.may_be_int8 = false;
    spec_.chooses_rows = true;
  }

  std::vector<std::vector<float>> numbers_;
  std::vector<TuningExample> examples_;
  TuningSpec spec_;
};

// Whatever is the fastest at the moment: what is written is what is served.
TEST_F(RowChoiceTest, ServesWhatItMeasured) {
  const RowsFolder folder("rows_measured");
  spec_.budget = ErrorBudget::Parse("l2<=1").value();
  for (bool may_be_int8 : {false, true}) {
    spec_.may_be_int8 = may_be_int8;
    fs::remove(TuningFileOf(folder.model()));
    const auto result = Tune(&EngineOfTests(), folder.model(), examples_, spec_);
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_TRUE(result->keeps_budget);
    EXPECT_LE(result->held_out.value, may_be_int8 ? 1 : 1e-5);
    if (cpu::BestIsa().Includes(cpu::Isa::kAvx2)) {
      const bool is_all_int8 = Int8Nodes(*result) == static_cast<int>(result->nodes.size());
      EXPECT_EQ(result->rows_tried > 0, !is_all_int8 || HasRowsOfIntegersToTry());
    }
    ASSERT_TRUE(WriteTuning(*result, TuningFileOf(folder.model())).ok());
    const auto tuned = EngineOfTests().LoadModel(folder.model());
    ASSERT_TRUE(tuned.ok()) << tuned.status();
    const auto rows = RowsOf(**tuned);
    int64_t named = 0;
    for (const TunedNode& node : result->nodes) {
      if (node.row.empty()) continue;
      ++named;
      EXPECT_EQ(rows.at(node.node), node.row);
      EXPECT_LT(node.row_after, node.row_before);
      EXPECT_THAT(node.reason, HasSubstr("the row " + node.row + " saves "));
    }
    EXPECT_EQ((*tuned)->tuning()->rows, named);
  }
}

// No row but those that leave all bits as they are keeps this budget.
TEST_F(RowChoiceTest, KeepsAllBitsWhereTheBudgetAsksForThat) {
  const RowsFolder folder("rows_same_bits");
  spec_.budget = ErrorBudget::Parse("l2<=0").value();
  const auto result = Tune(&EngineOfTests(), folder.model(), examples_, spec_);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_TRUE(result->keeps_budget);
  ASSERT_TRUE(WriteTuning(*result, TuningFileOf(folder.model())).ok());
  const auto tuned = EngineOfTests().LoadModel(folder.model());
  EXPECT_EQ(FloatsOf(**tuned, kResidualInput),
            FloatsOf(*LoadBytes(ResidualModel().Serialize()), kResidualInput));
}

// A second choice with the same precisions.
TEST_F(RowChoiceTest, MeasuresNoLayerAgainThatIsAsItWas) {
  const RowsFolder folder("rows_again");
  Engine& engine = EngineOfTests();
  const auto exact = engine.LoadModel(folder.model(), {.tries_rows = true}).value();
  const auto source = tuning::ModelSource::Read(folder.model()).value();
  const auto layers = tuning::FindLayers(source).value();
  const auto set = tuning::ExampleSet::Create(exact->signature(), examples_, 0.5, 1).value();
  const auto runs = tuning::TrialRuns::Create(&engine, &set, "", nullptr, absl::Minutes(1)).value();
  const auto exact_outputs = runs->Run(*exact, set.chosen, 0).value();
  const auto all = tuning::FindConversions(source, layers, std::vector<bool>(layers.size(), true));
  const auto calibration =
      tuning::Calibration::Observe(source, all, *runs, set, exact->signature(), [](int64_t) {
      }).value();
  const tuning::ChoiceInputs inputs{source, layers, calibration,   *runs, set,
                                    spec_,  *exact, exact_outputs, 0,     absl::InfiniteFuture()};
  const tuning::Precisions precisions(layers.size(), TunedPrecision::kExact);
  tuning::RowChoice first(inputs, cpu::BestIsa(), source.bytes(), precisions);
  ASSERT_TRUE(first.Run().ok());
  if (cpu::BestIsa().Includes(cpu::Isa::kAvx2)) {
    EXPECT_GT(first.tried(), 0);
  }
  tuning::RowChoice again(inputs, cpu::BestIsa(), source.bytes(), precisions, first.measured());
  ASSERT_TRUE(again.Run().ok());
  EXPECT_EQ(again.tried(), 0);
  EXPECT_EQ(again.measured().best.size(), layers.size());
  for (size_t i = 0; i < layers.size(); ++i)
    EXPECT_EQ(again.measured().best[i].row, first.measured().best[i].row) << layers[i].name;
}

TEST_F(RowChoiceTest, RefusesWhatItCannotMeasure) {
  OnnxBuilder open(13);
  open.Input("x", {-1, 8, -1, -1}).Floats("w", {16, 8, 1, 1});
  open.Node("Conv", {"x", "w"}, {"y"}).Output("y");
  const RowsFolder folder("rows_cannot", open.Serialize());
  const auto result = Tune(&EngineOfTests(), folder.model(), examples_, spec_);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("leave more open than the batch"));
  spec_.chooses_rows = false;
  const auto nothing = Tune(&EngineOfTests(), folder.model(), examples_, spec_);
  EXPECT_THAT(std::string(nothing.status().message()), HasSubstr("nothing would change"));
}

}  // namespace
}  // namespace tilewire::testing
