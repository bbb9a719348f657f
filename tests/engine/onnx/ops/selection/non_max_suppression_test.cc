// SPDX-License-Identifier: Apache-2.0
//
// NonMaxSuppression of constants, at load; tests/engine/facade/cut_test.cc has what is computed.
#include <algorithm>
#include <cmath>
#include <optional>

#include "tests/engine/onnx/op_case.h"
#include "tests/support/random_tensor.h"

namespace tilewire::reader {
namespace {

TEST(NonMaxSuppressionTest, OfKnownBoxes) {
  OnnxBuilder model;
  model.Floats("boxes", {1, 3, 4}, {0, 0, 2, 2, 0, 0, 2, 1.5f, 5, 5, 6, 6});
  model.Floats("scores", {1, 2, 3}, {3, 2, 1, 1, 2, 3}).Integers("most", {2});
  model.Node("NonMaxSuppression", {"boxes", "scores", "most"}, {"kept"}).Input("x", {1});
  model.Node("Cast", {"kept"}, {"y"}, {Int("to", onnx::TensorProto::FLOAT)}).Output("y");
  EXPECT_EQ(Computed(model, {{1}}, {{0}})[0], (Elements{0, 0, 0, 0, 0, 2, 0, 1, 2, 0, 1, 1}));
}

struct Box {
  float low[2], high[2];
  float area() const { return (high[0] - low[0]) * (high[1] - low[1]); }
};

// The definition: in each class the best box that is left, then those that overlap it go.
Elements Suppressed(const std::vector<Box>& boxes, const std::vector<float>& scores, int64_t most,
                    float overlap, std::optional<float> bound) {
  const auto share = [](const Box& a, const Box& b) {
    float shared = 1;
    for (int d = 0; d < 2; ++d)
      shared *= std::max(0.0f, std::min(a.high[d], b.high[d]) - std::max(a.low[d], b.low[d]));
    return shared <= 0 ? 0 : shared / (a.area() + b.area() - shared);
  };
  Elements result;
  const size_t count = boxes.size();
  for (size_t c = 0; c < scores.size() / count; ++c) {
    const float* of_class = &scores[c * count];
    std::vector<bool> gone(count);
    for (size_t i = 0; i < count; ++i)
      gone[i] = std::isnan(of_class[i]) || (bound && !(of_class[i] > *bound));
    for (int64_t kept = 0; kept < most; ++kept) {
      size_t best = count;
      for (size_t i = 0; i < count; ++i)
        if (!gone[i] && (best == count || of_class[i] > of_class[best])) best = i;
      if (best == count) break;
      result.insert(result.end(), {0, static_cast<float>(c), static_cast<float>(best)});
      for (size_t i = 0; i < count; ++i)
        gone[i] = gone[i] || i == best || share(boxes[best], boxes[i]) > overlap;
    }
  }
  return result;
}

// More than are put in order at once, scores that are equal or not numbers, boxes without area,
// bounds below, among and above the scores.
TEST(NonMaxSuppressionTest, ManyBoxes) {
  constexpr int64_t kBoxes = 1003, kClasses = 3;
  std::vector<float> corners = testing::RandomFloats(kBoxes * 4, 1, 0, 10);
  std::vector<float> scores = testing::RandomFloats(kBoxes * kClasses, 2, -1, 1);
  std::vector<Box> boxes;
  for (int64_t i = 0; i < kBoxes; ++i) {
    float* box = &corners[i * 4];
    for (int d = 0; d < 2; ++d) box[d + 2] = i % 50 == 7 ? box[d] : box[d] + box[d + 2] / 5;
    boxes.push_back({{box[0], box[1]}, {box[2], box[3]}});
  }
  for (size_t i = 0; i < scores.size(); i += 3) scores[i] = std::round(scores[i] * 8) / 8;
  for (size_t i = 0; i < scores.size(); i += 71) scores[i] = std::nanf("");
  for (const std::optional<float> bound :
       {std::optional<float>(), {-2.0f}, {0.5f}, {0.99f}, {2.0f}}) {
    for (const int64_t most : {5, 2000}) {
      OnnxBuilder model;
      model.Floats("boxes", {1, kBoxes, 4}, corners)
          .Floats("scores", {1, kClasses, kBoxes}, scores);
      model.Integers("most", {most}).Floats("overlap", {1}, {0.4f});
      std::vector<std::string> inputs = {"boxes", "scores", "most", "overlap"};
      if (bound) {
        model.Floats("bound", {1}, {*bound});
        inputs.push_back("bound");
      }
      model.Node("NonMaxSuppression", inputs, {"kept"}).Input("x", {1});
      model.Node("Cast", {"kept"}, {"y"}, {Int("to", onnx::TensorProto::FLOAT)}).Output("y");
      EXPECT_EQ(Computed(model, {{1}}, {{0}})[0], Suppressed(boxes, scores, most, 0.4f, bound))
          << bound.value_or(-9) << " " << most;
    }
  }
}

TEST(NonMaxSuppressionTest, Refusals) {
  for (const char* boxes : {"m", "z"})
    ExpectInvalid({{"no corners", "NonMaxSuppression", {boxes, "z"}, {}, "boxes of dims [2,"}});
}

}  // namespace
}  // namespace tilewire::reader
