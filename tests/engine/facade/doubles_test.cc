// SPDX-License-Identifier: Apache-2.0
//
// Models of f64: what is computed in f64 agrees to 1e-14 of the result, what rounds to f32 to 1e-6.
#include <cmath>
#include <string>
#include <vector>

#include "engine/functions/onnx_functions.h"
#include "gtest/gtest.h"
#include "tests/engine/facade/typed_model.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {
namespace {

using onnx::TensorProto;

void AddDoubles(OnnxBuilder* model, const std::string& name, const std::vector<int64_t>& dims,
                const std::vector<double>& values) {
  model->Tensor(name, dims, TensorProto::DOUBLE)
      ->set_raw_data(values.data(), values.size() * sizeof(double));
}

// Expects that the model, whose output is y, computes `expected` from x, to this share of each
// element.
void ExpectDoubles(OnnxBuilder model, const std::vector<double>& x,
                   const std::vector<double>& expected, double share = 1e-14) {
  const auto answer = Answer(model.Output("y", TensorProto::DOUBLE), {Bytes(x)});
  ASSERT_TRUE(answer.ok()) << answer.status();
  const std::vector<double> elements = ElementsOf<double>(*answer);
  ASSERT_EQ(elements.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(elements[i], expected[i], share * std::abs(expected[i])) << i;
}

OnnxBuilder Doubles(const std::vector<int64_t>& dims) {
  OnnxBuilder model(18);
  model.Input("x", dims, TensorProto::DOUBLE);
  return model;
}

TEST(DoublesTest, ConstantsKeepAllTheirDigits) {
  OnnxBuilder model = Doubles({2});
  AddDoubles(&model, "c", {2, 1}, {0.1, 1.0 / 3});
  AddDoubles(&model, "d", {1}, {0.7});
  model.Integers("flat", {-1}).Node("Reshape", {"c", "flat"}, {"f"}).Node("Exp", {"d"}, {"e"});
  model.Node("Concat", {"f", "f"}, {"g"}, {Int("axis", 0)}).Integers("two", {2, 3});
  model.Node("Gather", {"g", "two"}, {"h"}).Node("Mul", {"h", "d"}, {"known"});
  model.Node("Add", {"x", "known"}, {"s"}).Node("Add", {"s", "e"}, {"y"});
  ExpectDoubles(model, {1, 2}, {1 + 0.1 * 0.7 + std::exp(0.7), 2 + 0.7 / 3 + std::exp(0.7)});
}

// A scaled product, as tools that write models of f64 have them.
TEST(DoublesTest, Products) {
  OnnxBuilder model = Doubles({2, 2});
  AddDoubles(&model, "mean", {2}, {0.1, 0.2});
  AddDoubles(&model, "w", {2, 1}, {1.0 / 3, 0.7});
  AddDoubles(&model, "b", {1}, {0.3});
  model.Node("Sub", {"x", "mean"}, {"c"}).Node("MatMul", {"c", "w"}, {"p"});
  model.Node("Add", {"p", "b"}, {"y"});
  ExpectDoubles(model, {1, 2, 3, 4}, {0.9 / 3 + 1.8 * 0.7 + 0.3, 2.9 / 3 + 3.8 * 0.7 + 0.3});
}

TEST(DoublesTest, Activations) {
  const std::vector<double> x = {-30, -0.5, 1e-9, 0.7, 40};
  const auto softplus = [](double v) { return std::log1p(std::exp(v)); };
  const auto logistic = [](double v) { return 1 / (1 + std::exp(-v)); };
  const struct {
    const char* op;
    std::function<double(double)> function;
  } cases[] = {
      {"Relu", [](double v) { return std::max(v, 0.0); }},
      {"Tanh", [](double v) { return std::tanh(v); }},
      {"Sigmoid", logistic},
      {"Elu", [](double v) { return v > 0 ? v : std::expm1(v); }},
      {"Softplus", softplus},
      {"Mish", [&](double v) { return v * std::tanh(softplus(v)); }},
      {"LeakyRelu", [](double v) { return v > 0 ? v : v * double{0.01f}; }},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.op);
    std::vector<double> expected;
    for (const double v : x) expected.push_back(one.function(v));
    OnnxBuilder model = Doubles({5});
    ExpectDoubles(model.Node(one.op, {"x"}, {"y"}), x, expected);
  }
}

// Rows of engine/functions/functions.inc become activations without code of their own.
TEST(DoublesTest, EveryActivationOfTheTableHasAForm) {
  using functions::OnnxFunction;
  const std::vector<double> x = {-0.5, 0.7};
  for (const OnnxFunction& row : functions::kOnnxFunctions) {
    if (row.Is(OnnxFunction::kFolds | OnnxFunction::kThroughReals | OnnxFunction::kOnlyInCells))
      continue;
    SCOPED_TRACE(row.op);
    std::vector<double> expected;
    for (const double& v : x) expected.push_back(functions::Evaluate(row.WithDefaults(), &v));
    OnnxBuilder model(25);
    model.Input("x", {2}, TensorProto::DOUBLE).Node(std::string(row.op), {"x"}, {"y"});
    ExpectDoubles(model, x, expected);
  }
}

TEST(DoublesTest, SoftmaxAndMeans) {
  const std::vector<double> x = {0.1, 0.2, 0.4, -1};
  double sum = 0;
  for (const double v : x) sum += std::exp(v);
  std::vector<double> shares;
  for (const double v : x) shares.push_back(std::exp(v) / sum);
  OnnxBuilder softmax = Doubles({1, 4}), mean = Doubles({1, 4}), of_two = Doubles({1, 4});
  ExpectDoubles(softmax.Node("Softmax", {"x"}, {"y"}), x, shares);
  ExpectDoubles(mean.Node("ReduceMean", {"x"}, {"y"}), x, {-0.3 / 4});
  AddDoubles(&of_two, "c", {1, 4}, {1, 2, 3, 4});
  ExpectDoubles(of_two.Node("Mean", {"x", "c", "c"}, {"y"}), x,
                {2.1 / 3, 4.2 / 3, 6.4 / 3, 7.0 / 3});
}

TEST(DoublesTest, WhatHasNoFormOfF64IsRounded) {
  OnnxBuilder pooled = Doubles({1, 1, 2, 2}), convolved = Doubles({1, 1, 2, 2});
  pooled.Node("GlobalAveragePool", {"x"}, {"y"});
  ExpectDoubles(pooled, {0.1, 0.2, 0.3, 0.7}, {0.325}, 1e-6);
  AddDoubles(&convolved, "w", {1, 1, 1, 1}, {1.0 / 3});
  convolved.Node("Conv", {"x", "w"}, {"y"});
  ExpectDoubles(convolved, {3, 6, 9, 12}, {1, 2, 3, 4}, 1e-6);
}

}  // namespace
}  // namespace tilewire::testing
