// SPDX-License-Identifier: Apache-2.0
//
// Detectors, whose NonMaxSuppression is in the graph, against what torch found in the same images:
// as many boxes, and the same ones.
#include <cmath>

#include "gtest/gtest.h"
#include "tests/models/exported_model.h"

namespace tilewire::testing {
namespace {

// The bound on errors of scores, and of boxes relative to the image; rounding moves both.
constexpr float kBound = 1e-3f;

class DetectorTest : public ExportedModelTest {
 protected:
  // Boxes, scores and labels, whatever their order in the model.
  struct Found {
    std::vector<float> boxes, scores;
    std::vector<int64_t> labels;
  };

  Found Detect(const std::vector<float>& image) {
    const InputTensor input{model_->signature().inputs[0].dims, Layout::kNchw, {BytesOf(image)}};
    const auto outputs = model_->Run({&input, 1}, {}, {});
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    Found found;
    for (size_t i = 0; outputs.ok() && i < outputs->size(); ++i) {
      const AlignedBuffer& bytes = (*outputs)[i].bytes;
      const std::string& name = model_->signature().outputs[i].name;
      if (name == "boxes") found.boxes = FloatsOf(bytes);
      if (name == "scores") found.scores = FloatsOf(bytes);
      const auto* labels = reinterpret_cast<const int64_t*>(bytes.data());
      if (name == "labels") found.labels.assign(labels, labels + bytes.size() / sizeof(int64_t));
    }
    return found;
  }
};

TEST_F(DetectorTest, FindsWhatTorchFinds) {
  const float size = static_cast<float>(model_->signature().inputs[0].dims[1]);
  size_t boxes_of_all = 0;
  for (int i : {0, 1}) {
    SCOPED_TRACE(i);
    const Found got = Detect(ReadAll<float>(PathOf(absl::StrCat("input_", i, ".f32"))));
    const auto boxes = ReadAll<float>(PathOf(absl::StrCat("boxes_", i, ".f32")));
    const auto scores = ReadAll<float>(PathOf(absl::StrCat("scores_", i, ".f32")));
    const auto labels = ReadAll<int64_t>(PathOf(absl::StrCat("labels_", i, ".s64")));
    boxes_of_all += scores.size();
    ASSERT_EQ(got.scores.size(), scores.size());
    ASSERT_EQ(got.boxes.size(), boxes.size());
    ASSERT_EQ(got.labels.size(), labels.size());
    for (size_t box = 0; box < scores.size(); ++box) {
      EXPECT_NEAR(got.scores[box], scores[box], kBound) << box;
      // Either of two nearly equal scores may come first.
      bool is_found = false;
      for (size_t mine = 0; mine < scores.size() && !is_found; ++mine) {
        is_found =
            got.labels[mine] == labels[box] && std::abs(got.scores[mine] - scores[box]) <= kBound;
        for (int d = 0; d < 4 && is_found; ++d)
          is_found = std::abs(got.boxes[4 * mine + d] - boxes[4 * box + d]) <= kBound * size;
      }
      EXPECT_TRUE(is_found) << "box " << box;
    }
  }
  EXPECT_GT(boxes_of_all, 0u);
}

TEST_F(DetectorTest, TheSameBitsAgain) {
  const auto image = ReadAll<float>(PathOf("input_0.f32"));
  const Found once = Detect(image);
  Detect(ReadAll<float>(PathOf("input_1.f32")));
  const Found again = Detect(image);
  EXPECT_TRUE(BytesOf(once.boxes) == BytesOf(again.boxes));
  EXPECT_TRUE(BytesOf(once.scores) == BytesOf(again.scores));
}

TEST_F(DetectorTest, TheExplanationNamesWhatIsWaitedFor) {
  const Explanation plan = model_->Explain({}).value();
  bool waits = false;
  for (const PlanStep& step : plan.steps)
    waits = waits || step.implementation == "stage/late" || step.implementation == "stage/known";
  EXPECT_TRUE(waits);
}

}  // namespace
}  // namespace tilewire::testing
