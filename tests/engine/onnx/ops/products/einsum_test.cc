// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

// The equation's result for x of [2,3] and z of `second`, whose elements count from 1.
Elements Einsum(const std::string& equation, const std::vector<int64_t>& second) {
  OnnxBuilder model;
  model.Input("x", {2, 3});
  std::vector<Elements> elements = {{1, 2, 3, 4, 5, 6}};
  std::vector<Dims> dims = {{2, 3}};
  std::vector<std::string> inputs = {"x"};
  if (!second.empty()) {
    model.Input("z", second);
    dims.emplace_back(second.begin(), second.end());
    inputs.push_back("z");
    for (int64_t i = 0; i < *ElementCount(dims[1]); ++i) {
      if (i == 0) elements.emplace_back();
      elements[1].push_back(static_cast<double>(i + 1));
    }
  }
  model.Node("Einsum", inputs, {"y"}, {String("equation", equation)}).Output("y");
  const std::vector<Elements> outputs = Computed(model, dims, elements);
  return outputs.empty() ? Elements() : outputs[0];
}

TEST(EinsumTest, OneOperand) {
  EXPECT_EQ(Einsum("ij->ji", {}), (Elements{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(Einsum("ij -> i", {}), (Elements{6, 15}));
  EXPECT_EQ(Einsum("ij->", {}), (Elements{21}));
  EXPECT_EQ(Einsum("ba", {}), (Elements{1, 4, 2, 5, 3, 6}));
}

TEST(EinsumTest, TwoOperands) {
  EXPECT_EQ(Einsum("ij,jk->ik", {3, 2}), (Elements{22, 28, 49, 64}));
  EXPECT_EQ(Einsum("ij,kj->ki", {2, 3}), (Elements{14, 32, 32, 77}));
  EXPECT_EQ(Einsum("ij,ij->i", {2, 3}), (Elements{14, 77}));
  EXPECT_EQ(Einsum("ij,k->jik", {2}), (Elements{1, 2, 4, 8, 2, 4, 5, 10, 3, 6, 6, 12}));
  EXPECT_EQ(Einsum("ij,jk", {3, 1}), (Elements{14, 32}));
  EXPECT_EQ(Einsum("ij,jk->i", {3, 2}), (Elements{50, 113}));
}

TEST(EinsumTest, EllipsesAreBroadcast) {
  EXPECT_EQ(Einsum("...j,jk->...k", {3, 2}), (Elements{22, 28, 49, 64}));
  EXPECT_EQ(Einsum("i...->...i", {}), (Elements{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(Einsum("...,...->...", {1, 3}), (Elements{1, 4, 9, 4, 10, 18}));
  EXPECT_EQ(Einsum("...i,...i", {2, 1, 3}), (Elements{14, 32, 32, 77}));
  EXPECT_EQ(Einsum("...->", {}), (Elements{21}));
}

TEST(EinsumTest, LettersThatStandTwiceTakeDiagonals) {
  EXPECT_EQ(Einsum("ij,kk->ij", {2, 2}), (Elements{5, 10, 15, 20, 25, 30}));
  EXPECT_EQ(Einsum("ij,kik->ij", {2, 2, 2}), (Elements{7, 14, 21, 44, 55, 66}));
}

// The two that give the smallest product come first, whatever their order.
TEST(EinsumTest, ThreeOperands) {
  OnnxBuilder model;
  model.Input("x", {2, 3}).Input("z", {3, 2}).Input("v", {2});
  model.Node("Einsum", {"x", "z", "v"}, {"y"}, {String("equation", "ij,jk,k->i")}).Output("y");
  EXPECT_EQ(
      Computed(model, {{2, 3}, {3, 2}, {2}}, {{1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6}, {1, 10}}),
      (std::vector<Elements>{{302, 689}}));
  EXPECT_THAT(BuiltText(model, {{2, 3}, {3, 2}, {2}}),
              AllOf(HasSubstr("/product [3,1] = "), HasSubstr("y/product [2,1] = ")));
}

TEST(EinsumTest, Refusals) {
  const auto of = [](const char* equation) {
    return std::vector<onnx::AttributeProto>{String("equation", equation)};
  };
  ExpectInvalid({
      {"two sizes", "Einsum", {"m", "m"}, of("ij,jk->ik"), "two sizes of 'j'"},
      {"another rank", "Einsum", {"m"}, of("ijk->i"), "'ijk' of [2,3]"},
      {"no term", "Einsum", {"m"}, of("ij->k"), "no term has 'k'"},
      {"no letter", "Einsum", {"m"}, of("i2->i"), "equation with '2'"},
      {"two arrows", "Einsum", {"m"}, of("ij->i->j"), "two arrows"},
      {"three terms", "Einsum", {"m"}, of("i,j,k"), "3 terms"},
  });
  ExpectInvalid({
      {"no diagonal", "Einsum", {"m"}, of("ii->i"), "two sizes of 'i'"},
      {"twice in the result", "Einsum", {"m"}, of("ij->ii"), "'i' twice"},
      {"too many letters", "Einsum", {"m"}, of("...ijk->i"), "'...ijk' of rank 2"},
      {"two ellipses", "Einsum", {"m"}, of("...i...->i"), "equation with '.'"},
  });
}

}  // namespace
}  // namespace tilewire::reader
