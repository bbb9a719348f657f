// SPDX-License-Identifier: Apache-2.0
//
// Dropout as an operator of inference, which draws what numpy draws, and in networks for training,
// where masks are inputs.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

// x of [2, 4], a ratio, and training_mode where it is given. The type of the mask is as declared.
OnnxBuilder Dropped(float ratio, std::optional<bool> training,
                    const std::vector<onnx::AttributeProto>& attributes = {},
                    onnx::TensorProto::DataType mask_type = onnx::TensorProto::BOOL) {
  OnnxBuilder model;
  model.Input("x", {2, 4}).Floats("ratio", {}, {ratio});
  std::vector<std::string> inputs = {"x", "ratio"};
  if (training) {
    model.Tensor("training", {}, onnx::TensorProto::BOOL)->add_int32_data(*training);
    inputs.push_back("training");
  }
  model.Node("Dropout", inputs, {"y", "mask"}, attributes);
  model.Output("y").Output("mask", mask_type);
  return model;
}

const Elements kOneToEight = {1, 2, 3, 4, 5, 6, 7, 8};

TEST(DropoutTest, TheMaskThatKeepsEverything) {
  OnnxBuilder model;
  model.Input("x", {2, 1, 3}).Node("Dropout", {"x"}, {"kept", "mask"});
  model.Output("kept").Output("mask");
  EXPECT_EQ(BuiltText(model, {{2, 1, 3}}),
            "input x [2,1,3]\nkept/kept [1,1,1] = literal() elements=1\n"
            "mask [2,1,3] = select(kept/kept) 0:0 by 0 x2 2:0 by 0 x3\noutput x\noutput mask\n");
  EXPECT_EQ(Computed(model, {{2, 1, 3}}, {{1, 2, 3, 4, 5, 6}}),
            (std::vector<Elements>{{1, 2, 3, 4, 5, 6}, {1, 1, 1, 1, 1, 1}}));
}

// Elements are dropped in training_mode only, and there not with a ratio of 0.
TEST(DropoutTest, DropsNothingUnlessTheFileSaysSo) {
  for (const auto training : {std::optional<bool>(), std::optional(false), std::optional(true)}) {
    for (const float ratio : {0.0f, 0.5f}) {
      const bool drops = training.value_or(false) && ratio != 0;
      const Elements kept = Computed(Dropped(ratio, training), {{2, 4}}, {kOneToEight})[0];
      EXPECT_EQ(kept != kOneToEight, drops) << ratio;
    }
  }
}

// numpy.random.RandomState(seed).uniform(size=(2, 4)):
//   0: .549 .715 .603 .545 .424 .646 .438 .892;  7: .076 .780 .438 .723 .978 .538 .501 .072
TEST(DropoutTest, DrawsWhatNumpyDraws) {
  EXPECT_EQ(Computed(Dropped(0.5f, true), {{2, 4}}, {kOneToEight}),
            (std::vector<Elements>{{2, 4, 6, 8, 0, 12, 0, 16}, {1, 1, 1, 1, 0, 1, 0, 1}}));
  EXPECT_EQ(Computed(Dropped(0.75f, true, {Int("seed", 7)}), {{2, 4}}, {kOneToEight}),
            (std::vector<Elements>{{0, 8, 0, 0, 20, 0, 0, 0}, {0, 1, 0, 0, 1, 0, 0, 0}}));
}

TEST(DropoutTest, RatiosOutOfRangeAreRefusedWhereTheyDrop) {
  for (const float ratio : {1.0f, -0.5f, std::nanf("")}) {
    EXPECT_THAT(BuiltText(Dropped(ratio, true), {{2, 4}}),
                AllOf(HasSubstr("INVALID_ARGUMENT: node 'node_y'"), HasSubstr("ratio is "),
                      HasSubstr("; allowed: 0 to below 1")));
    EXPECT_THAT(BuiltText(Dropped(ratio, false), {{2, 4}}), HasSubstr("output x\n"));
  }
}

network::Network ForPurpose(const OnnxBuilder& builder, const TrainingPurpose& purpose) {
  const auto model = Open(builder);
  EXPECT_TRUE(model.ok()) << model.status();
  auto network = (*model)->SpecializeForTraining({{2, 4}}, purpose);
  EXPECT_TRUE(network.ok()) << network.status();
  return *std::move(network);
}

TEST(DropoutTest, AnUpdateDropsByMasksThatAreInputs) {
  const network::Network network = ForPurpose(
      Dropped(0.25f, std::nullopt, {Int("seed", -1)}, onnx::TensorProto::FLOAT), {.drops = true});
  EXPECT_EQ(NetworkToText(network),
            "input x [2,4]\ninput y/drawn [2,4]\n"
            "y/y/zero [1] = literal() elements=1\n"
            "mask [2,4] = less(y/y/zero, y/drawn)\n"
            "y [2,4] = mul(x, y/drawn)\n"
            "output y\noutput mask\n");
  ASSERT_EQ(network.masks.size(), 1);
  EXPECT_EQ(network.masks[0].value, network.inputs[1]);
  EXPECT_EQ(network.masks[0].ratio, 0.25f);
  EXPECT_EQ(network.masks[0].seed, UINT64_MAX);
}

TEST(DropoutTest, WhoDropsWhen) {
  struct {
    const char* why;
    OnnxBuilder model;
    size_t of_update, of_evaluation;
  } const cases[] = {
      {"training_mode is left out", Dropped(0.25f, std::nullopt), 1, 0},
      {"training_mode", Dropped(0.25f, true), 1, 0},
      {"no training_mode", Dropped(0.25f, false), 0, 0},
      {"nothing to drop", Dropped(0, true), 0, 0},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.why);
    const network::Network update = ForPurpose(one.model, {.drops = true});
    EXPECT_EQ(update.masks.size(), one.of_update);
    EXPECT_EQ(ForPurpose(one.model, {}).masks.size(), one.of_evaluation);
  }
}

TEST(DropoutTest, BeforeOpset12TheRatioIsAnAttribute) {
  OnnxBuilder model(10);
  model.Input("x", {2, 4}).Node("Dropout", {"x"}, {"a"}, {Float("ratio", 0.125f)});
  model.Node("Dropout", {"a"}, {"y"}).Output("y");
  EXPECT_EQ(BuiltText(model, {{2, 4}}), "input x [2,4]\noutput x\n");
  const network::Network network = ForPurpose(model, {.drops = true});
  ASSERT_EQ(network.masks.size(), 2);
  EXPECT_EQ(network.masks[0].ratio, 0.125f);
  EXPECT_EQ(network.masks[1].ratio, 0.5f);
  EXPECT_NE(network.masks[0].node, network.masks[1].node);
}

}  // namespace
}  // namespace tilewire::reader
