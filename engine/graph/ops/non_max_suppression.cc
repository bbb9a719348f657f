// SPDX-License-Identifier: Apache-2.0
//
// NonMaxSuppression: in each class of each image, the best box, then the best of those that do not
// overlap it, and so on. dst is [kept, 3] of (image, class, box). Boxes are kept from the highest
// score, the first of equals; a box is dropped where
//   |kept * box| / (|kept| + |box| - |kept * box|) > iou_threshold.
// Boxes that are not larger than the score threshold, and those whose score is not a number, are
// never kept. Source: ONNX's operator document, opset 11.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/ops.h"

namespace tilewire::graph {
namespace {

// Between two questions whether the work is to end.
constexpr int64_t kMostCompared = int64_t{1} << 16;

struct Rectangle {
  float low[2], high[2];
  float area() const { return (high[0] - low[0]) * (high[1] - low[1]); }
};

// Corners may be any two that are opposite; else the numbers are a center, a width and a height.
Rectangle RectangleOf(const float* box, bool is_center) {
  Rectangle rectangle{};
  for (int d = 0; d < 2; ++d) {
    const float a = box[d], b = box[d + 2];
    rectangle.low[d] = is_center ? a - b / 2 : std::min(a, b);
    rectangle.high[d] = is_center ? a + b / 2 : std::max(a, b);
  }
  return rectangle;
}

bool OverlapsMore(const Rectangle& a, const Rectangle& b, float threshold) {
  float shared = 1;
  for (int d = 0; d < 2; ++d) {
    const float length = std::min(a.high[d], b.high[d]) - std::max(a.low[d], b.low[d]);
    if (!(length > 0)) return false;
    shared *= length;
  }
  if (!(a.area() > 0) || !(b.area() > 0)) return false;
  return shared / (a.area() + b.area() - shared) > threshold;
}

struct Suppression {
  int64_t most = 0;  // boxes of a class
  float overlap = 0;
  bool is_bounded = false;  // by `score`
  float score = 0;
  bool is_center = false;
};

// The boxes of one class that are kept, best first.
absl::StatusOr<std::vector<int64_t>> Kept(const NodeContext& context, const Suppression& rule,
                                          absl::Span<const float> boxes,
                                          absl::Span<const float> scores) {
  std::vector<int64_t> candidates;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (rule.is_bounded ? scores[i] > rule.score : !std::isnan(scores[i]))
      candidates.push_back(static_cast<int64_t>(i));
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  std::vector<int64_t> kept;
  std::vector<Rectangle> rectangles;
  int64_t compared = 0;
  for (int64_t candidate : candidates) {
    if (static_cast<int64_t>(kept.size()) >= rule.most) break;
    compared += static_cast<int64_t>(rectangles.size());
    if (compared > kMostCompared) {
      ABSL_RETURN_IF_ERROR(context.Interrupted());
      compared = 0;
    }
    const Rectangle rectangle = RectangleOf(&boxes[4 * candidate], rule.is_center);
    const bool overlaps = std::any_of(
        rectangles.begin(), rectangles.end(),
        [&](const Rectangle& one) { return OverlapsMore(one, rectangle, rule.overlap); });
    if (overlaps) continue;
    kept.push_back(candidate);
    rectangles.push_back(rectangle);
  }
  return kept;
}

// The only element of an input that may be left out.
absl::StatusOr<double> NumberOr(const NodeContext& context, int i, double absent) {
  if (!context.Has(i)) return absent;
  const ConstantPtr& constant = context.input(i).constant;
  if (constant == nullptr)
    return context.node.Unimplemented(absl::StrCat("input ", i, " is computed"));
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr known, InMemory(constant));
  if (known->count() != 1) return context.node.Invalid(absl::StrCat("input ", i));
  return known->is_float ? known->floats[0] : static_cast<double>(known->ints[0]);
}

absl::StatusOr<Suppression> ReadRule(const NodeContext& context) {
  Suppression rule;
  ABSL_ASSIGN_OR_RETURN(const double most, NumberOr(context, 2, 0));
  rule.most = most >= 0x1p53 ? int64_t{1} << 53 : static_cast<int64_t>(std::max(most, 0.0));
  ABSL_ASSIGN_OR_RETURN(const double overlap, NumberOr(context, 3, 0));
  rule.overlap = static_cast<float>(overlap);
  if (!(overlap >= 0 && overlap <= 1))
    return context.node.Invalid(absl::StrCat("iou_threshold ", overlap, ", allowed 0 to 1"));
  rule.is_bounded = context.Has(4);
  ABSL_ASSIGN_OR_RETURN(const double score, NumberOr(context, 4, 0));
  rule.score = static_cast<float>(score);
  ABSL_ASSIGN_OR_RETURN(const int64_t center, context.node.Int("center_point_box", 0));
  if (center != 0 && center != 1)
    return context.node.Invalid(absl::StrCat("center_point_box ", center));
  rule.is_center = center == 1;
  return rule;
}

absl::Status BuildNonMaxSuppression(NodeContext& context) {
  const Node& node = context.node;
  const Dims &boxes = context.input(0).dims, &scores = context.input(1).dims;
  if (boxes.size() != 3 || scores.size() != 3 || boxes[2] != 4 || boxes[0] != scores[0] ||
      boxes[1] != scores[2])
    return node.Invalid(absl::StrCat("boxes of dims ", DimsToString(boxes), " with scores of dims ",
                                     DimsToString(scores)));
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr corners, context.Floats(0));
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr weights, context.Floats(1));
  ABSL_ASSIGN_OR_RETURN(const Suppression rule, ReadRule(context));
  std::vector<int64_t> all;
  for (int64_t row = 0; row < scores[0] * scores[1]; ++row) {
    const int64_t image = row / scores[1];
    ABSL_ASSIGN_OR_RETURN(
        const std::vector<int64_t> kept,
        Kept(context, rule, corners->floats.subspan(image * boxes[1] * 4, boxes[1] * 4),
             weights->floats.subspan(row * scores[2], scores[2])));
    for (int64_t box : kept) all.insert(all.end(), {image, row % scores[1], box});
  }
  const int64_t count = static_cast<int64_t>(all.size()) / 3;
  return context.SetOutput(MakeInts(context.output_name(), {count, 3}, std::move(all)));
}

}  // namespace

TILEWIRE_OPERATORS(NonMaxSuppression) = {
    {"NonMaxSuppression", 10, 2, 5, "center_point_box", BuildNonMaxSuppression, Folds::kInMemory,
     Indices, /*deciding=*/0, /*compose=*/nullptr, /*may_omit_first=*/false, /*is_late=*/true},
};

}  // namespace tilewire::graph
