// SPDX-License-Identifier: Apache-2.0
//
// Optimizers (engine/onnx/ops/training/optimizer.cc): one step of two tensors of different shapes,
// against the formulas of ONNX's documents in double.
#include <cmath>

#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

constexpr char kTrainingDomain[] = "ai.onnx.preview.training";

// `op` of tensors of 2 and of 1 element and `states` states of each.
OnnxBuilder OptimizerModel(const std::string& op, int states,
                           const std::vector<onnx::AttributeProto>& attributes) {
  OnnxBuilder model(13);
  onnx::OperatorSetIdProto* opset = model.proto().add_opset_import();
  opset->set_domain(kTrainingDomain);
  opset->set_version(1);
  model.Input("rate", {}).Input("count", {}, onnx::TensorProto::INT64);
  std::vector<std::string> inputs = {"rate", "count"}, outputs;
  for (int group = 0; group < 2 + states; ++group) {
    for (int i = 0; i < 2; ++i) {
      inputs.push_back(absl::StrCat("in", group, "_", i));
      model.Input(inputs.back(), {i == 0 ? 2 : 1});
      if (group != 1) outputs.push_back(absl::StrCat("out", group, "_", i));
    }
  }
  model.Node(op, inputs, outputs, attributes);
  model.graph().mutable_node()->rbegin()->set_domain(kTrainingDomain);
  for (const std::string& output : outputs) model.Output(output);
  return model;
}

// x, gradient and states of one element, and what becomes of x and the states.
struct OptimizedElement {
  double x, g;
  std::vector<double> states;
};
using OptimizerFormula = std::function<void(double rate, double count, OptimizedElement* element)>;

const std::vector<OptimizedElement> kElements = {
    {1.25, -2, {0.5, 0.25}}, {-3, 0.125, {2, 1.5}}, {0.5, 1, {0, 4}}};

void ExpectStep(const std::string& op, int states,
                const std::vector<onnx::AttributeProto>& attributes,
                const OptimizerFormula& formula) {
  for (const double count : {0.0, 3.0}) {
    SCOPED_TRACE(absl::StrCat(op, " at ", count));
    // By group: those of the first tensor, that of the second.
    std::vector<Elements> inputs = {{0.25}, {count}}, expected;
    std::vector<Dims> dims = {{}, {}};
    for (int group = 0; group < 2 + states; ++group) {
      for (const std::vector<int>& tensor : {std::vector<int>{0, 1}, {2}}) {
        Elements given, wanted;
        for (int i : tensor) {
          OptimizedElement element = kElements[i];
          const auto of_group = [&] {
            return group == 0 ? element.x : group == 1 ? element.g : element.states[group - 2];
          };
          given.push_back(of_group());
          formula(0.25, count, &element);
          wanted.push_back(of_group());
        }
        dims.push_back({static_cast<int64_t>(given.size())});
        inputs.push_back(given);
        if (group != 1) expected.push_back(wanted);
      }
    }
    const std::vector<Elements> computed =
        Computed(OptimizerModel(op, states, attributes), dims, inputs);
    ASSERT_EQ(computed.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) ExpectNear(computed[i], expected[i], 1e-6);
  }
}

TEST(OptimizerTest, Adagrad) {
  const auto formula = [](double decay, double epsilon, double norm) {
    return [=](double rate, double count, OptimizedElement* e) {
      const double r = norm * e->x + e->g;
      e->states[0] += r * r;
      e->x -= rate / (1 + count * decay) * r / (std::sqrt(e->states[0]) + epsilon);
    };
  };
  ExpectStep("Adagrad", 1, {}, formula(0, 1e-6, 0));
  ExpectStep("Adagrad", 1,
             {Float("decay_factor", .5f), Float("epsilon", .25f), Float("norm_coefficient", .125f)},
             formula(.5, .25, .125));
}

TEST(OptimizerTest, Adam) {
  const auto formula = [](double alpha, double beta, double epsilon, double norm, double post) {
    return [=](double rate, double count, OptimizedElement* e) {
      const double r = norm * e->x + e->g;
      e->states[0] = alpha * e->states[0] + (1 - alpha) * r;
      e->states[1] = beta * e->states[1] + (1 - beta) * r * r;
      const double by =
          count > 0 ? rate * std::sqrt(1 - std::pow(beta, count)) / (1 - std::pow(alpha, count))
                    : rate;
      e->x -= by * e->states[0] / (std::sqrt(e->states[1]) + epsilon);
      e->x *= 1 - post;
    };
  };
  ExpectStep("Adam", 2, {Float("beta", .875f)}, formula(0.9f, .875, 1e-6, 0, 0));
  ExpectStep("Adam", 2,
             {Float("alpha", .5f), Float("beta", .75f), Float("epsilon", .25f),
              Float("norm_coefficient", .125f), Float("norm_coefficient_post", .0625f)},
             formula(.5, .75, .25, .125, .0625));
}

TEST(OptimizerTest, Momentum) {
  const auto formula = [](bool nesterov) {
    return [=](double rate, double count, OptimizedElement* e) {
      const double r = .125 * e->x + e->g;
      e->states[0] = .5 * e->states[0] + (count > 0 ? .75 : 1) * r;
      e->x -= rate * (nesterov ? r + .5 * e->states[0] : e->states[0]);
    };
  };
  const std::vector<onnx::AttributeProto> numbers = {Float("alpha", .5f), Float("beta", .75f),
                                                     Float("norm_coefficient", .125f)};
  for (const bool nesterov : {false, true}) {
    std::vector<onnx::AttributeProto> attributes = numbers;
    attributes.push_back(String("mode", nesterov ? "nesterov" : "standard"));
    ExpectStep("Momentum", 1, attributes, formula(nesterov));
  }
  EXPECT_THAT(Open(OptimizerModel("Momentum", 1, {Float("alpha", .5f)})),
              testing::StatusIs(absl::StatusCode::kInvalidArgument, "'beta' is missing"));
  EXPECT_THAT(Open(OptimizerModel("Adam", 1, {})),
              testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                "8 inputs, where there are 2 and 4 for each tensor"));
}

}  // namespace
}  // namespace tilewire::reader
