// SPDX-License-Identifier: Apache-2.0
//
// The whole numbers that a model in training takes from its inputs and targets.
#include "absl/strings/str_cat.h"
#include "engine/facade/element_bounds.h"
#include "tests/engine/facade/trained_model.h"

namespace tilewire::testing {
namespace {

// Scores [N, 3] of the sums of two embeddings: of indices as they come, and by way of other shapes
// and types; and a third one of indices that are computed.
TEST(ElementBoundsTest, AreOfWhatTakesTheElementsAsTheyAre) {
  for (const bool learns : {true, false}) {
    SCOPED_TRACE(learns ? "embeddings that learn" : "frozen ones");
    OnnxBuilder model(13);
    model.Input("ids", {-1, 2}, onnx::TensorProto::INT64).Floats("words", {9, 3});
    model.Floats("kinds", {4, 3}).Floats("places", {5, 3}).Floats("w", {3, 3});
    model.Integers("one", {1}).Integers("axis", {1});
    model.Node("Gather", {"words", "ids"}, {"word"});
    model.Node("Cast", {"ids"}, {"narrow"}, {Int("to", onnx::TensorProto::INT32)});
    model.Node("Transpose", {"narrow"}, {"turned"}, {Ints("perm", {1, 0})});
    model.Node("Gather", {"kinds", "turned"}, {"kind"});
    model.Node("Transpose", {"kind"}, {"back"}, {Ints("perm", {1, 0, 2})});
    model.Node("Sub", {"ids", "one"}, {"less"}).Node("Gather", {"places", "less"}, {"place"});
    model.Node("Sum", {"word", "back", "place"}, {"all"});
    model.Node("ReduceSum", {"all", "axis"}, {"sum"}, {Int("keepdims", 0)});
    model.Node("MatMul", {"sum", "w"}, {"y"}).Output("y");
    TrainingSpec spec = CrossEntropy();
    if (!learns) spec.groups = {{.pattern = "w"}, {.pattern = "*", .frozen = true}};
    ASSERT_OK_AND_ASSIGN(auto trainer, TrainerOf(model, spec));
    const std::string ids = Bytes(std::vector<int64_t>{1, 2, 3, 1}),
                      labels = Bytes<int64_t>({0, 2});
    const InputTensor inputs{{2, 2}, Layout::kNchw, {ids}}, targets{{2}, Layout::kNchw, {labels}};
    ASSERT_OK_AND_ASSIGN(const auto bounds,
                         trainer->Prepare({&inputs, 1}, {&targets, 1}, false, {}));
    std::vector<std::string> texts;
    for (const ElementBounds& one : bounds) {
      texts.push_back(absl::StrCat(one.is_target ? "target " : "input ", one.tensor, ": ",
                                   one.least, " to ", one.most, ", ", one.reason));
    }
    EXPECT_THAT(texts, ::testing::UnorderedElementsAre(
                           "input 0: -9 to 8, 'node_word' takes one of 9 by its index",
                           "input 0: -4 to 3, 'node_kind' takes one of 4 by its index",
                           "target 0: 0 to 2, output 'y' has 3 classes"));
    EXPECT_THAT(trainer->Update({&inputs, 1}, {&targets, 1}, {}), IsOk());
  }
}

}  // namespace
}  // namespace tilewire::testing
