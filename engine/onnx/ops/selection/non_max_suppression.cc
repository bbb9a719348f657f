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
#include <cstring>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/onnx/ops/ops.h"

namespace tilewire::reader {
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

constexpr int kLanes = 4;
using Floats = float __attribute__((vector_size(kLanes * sizeof(float))));

// Rectangles that are compared with another one, a few at a time.
class Rectangles {
 public:
  int64_t size() const { return size_; }

  void Add(const Rectangle& one) {
    if (size_ % kLanes == 0) groups_.emplace_back();
    Group& group = groups_.back();
    const int64_t lane = size_++ % kLanes;
    for (int d = 0; d < 2; ++d) {
      group.low[d][lane] = one.low[d];
      group.high[d][lane] = one.high[d];
    }
    group.area[lane] = one.area();
  }

  // Whether one of them shares more than the threshold with `other`. Lanes without a rectangle have
  // an area of 0.
  bool OverlapMore(const Rectangle& other, float threshold) const {
    const float area = other.area();
    if (!(area > 0)) return false;
    for (const Group& group : groups_) {
      const Floats width = LengthOf(group, other, 0), height = LengthOf(group, other, 1);
      const Floats shared = width * height;
      const auto more = (width > 0) & (height > 0) & (group.area > 0) &
                        (shared / (group.area + area - shared) > threshold);
      for (int lane = 0; lane < kLanes; ++lane)
        if (more[lane] != 0) return true;
    }
    return false;
  }

 private:
  struct Group {
    Floats low[2] = {}, high[2] = {}, area = {};
  };

  static Floats LengthOf(const Group& group, const Rectangle& other, int d) {
    const Floats low = Floats{} + other.low[d], high = Floats{} + other.high[d];
    return (high < group.high[d] ? high : group.high[d]) -
           (group.low[d] < low ? low : group.low[d]);
  }

  std::vector<Group> groups_;
  int64_t size_ = 0;
};

struct Suppression {
  int64_t most = 0;  // boxes of a class
  float overlap = 0;
  bool is_bounded = false;  // by `score`
  float score = 0;
  bool is_center = false;
};

struct Candidate {
  float score;
  int64_t box;
  // The first of equals before the others.
  bool operator<(const Candidate& other) const {
    return score > other.score || (score == other.score && box < other.box);
  }
};

constexpr int64_t kScoresAtOnce = 4 * kLanes;

// Whether one of so many scores is above the bound.
bool AnyAbove(const float* scores, float bound) {
  auto above = Floats{} > Floats{};
  for (int64_t i = 0; i < kScoresAtOnce; i += kLanes) {
    Floats some;
    std::memcpy(&some, scores + i, sizeof(some));
    above |= some > bound;
  }
  uint64_t halves[2];
  std::memcpy(halves, &above, sizeof(above));
  return (halves[0] | halves[1]) != 0;
}

// The boxes of one class that may be kept. With a bound, most groups of scores have none.
std::vector<Candidate> CandidatesOf(const Suppression& rule, absl::Span<const float> scores) {
  std::vector<Candidate> candidates;
  const int64_t count = static_cast<int64_t>(scores.size());
  for (int64_t first = 0; first < count; first += kScoresAtOnce) {
    const int64_t end = std::min(count, first + kScoresAtOnce);
    const bool is_whole = end - first == kScoresAtOnce;
    if (rule.is_bounded && is_whole && !AnyAbove(&scores[first], rule.score)) continue;
    for (int64_t i = first; i < end; ++i)
      if (rule.is_bounded ? scores[i] > rule.score : !std::isnan(scores[i]))
        candidates.push_back({scores[i], i});
  }
  return candidates;
}

// The boxes of one class that are kept, best first. As many candidates are put in order as are
// looked at.
absl::StatusOr<std::vector<int64_t>> Kept(const NodeContext& context, const Suppression& rule,
                                          absl::Span<const float> boxes,
                                          absl::Span<const float> scores) {
  constexpr int64_t kFewestInOrder = 256;
  std::vector<Candidate> candidates = CandidatesOf(rule, scores);
  const int64_t count = static_cast<int64_t>(candidates.size());
  std::vector<int64_t> kept;
  Rectangles rectangles;
  int64_t compared = 0, in_order = 0;
  for (int64_t i = 0; i < count && rectangles.size() < rule.most; ++i) {
    if (i == in_order) {
      const int64_t next = std::min(count, in_order + std::max(kFewestInOrder, in_order));
      const auto begin = candidates.begin() + in_order, end = candidates.begin() + next;
      if (next < count) std::nth_element(begin, end, candidates.end());
      std::sort(begin, end);
      in_order = next;
    }
    compared += rectangles.size();
    if (compared > kMostCompared) {
      ABSL_RETURN_IF_ERROR(context.Interrupted());
      compared = 0;
    }
    const int64_t box = candidates[i].box;
    const Rectangle rectangle = RectangleOf(&boxes[4 * box], rule.is_center);
    if (rectangles.OverlapMore(rectangle, rule.overlap)) continue;
    kept.push_back(box);
    rectangles.Add(rectangle);
  }
  return kept;
}

// The only element of an input that may be left out.
absl::StatusOr<double> NumberOr(const NodeContext& context, int i, double absent) {
  if (!context.Has(i)) return absent;
  const ConstantPtr& constant = context.input(i).constant;
  if (constant == nullptr) return context.node.Unimplemented("input ", i, " is computed");
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr known, InMemory(constant));
  if (known->count() != 1) return context.node.Invalid("input ", i);
  return known->is_float ? known->floats[0] : static_cast<double>(known->ints[0]);
}

absl::StatusOr<Suppression> ReadRule(const NodeContext& context) {
  Suppression rule;
  ABSL_ASSIGN_OR_RETURN(const double most, NumberOr(context, 2, 0));
  rule.most = most >= 0x1p53 ? int64_t{1} << 53 : static_cast<int64_t>(std::max(most, 0.0));
  ABSL_ASSIGN_OR_RETURN(const double overlap, NumberOr(context, 3, 0));
  rule.overlap = static_cast<float>(overlap);
  if (!(overlap >= 0 && overlap <= 1))
    return context.node.Invalid("iou_threshold ", overlap, ", allowed 0 to 1");
  rule.is_bounded = context.Has(4);
  ABSL_ASSIGN_OR_RETURN(const double score, NumberOr(context, 4, 0));
  rule.score = static_cast<float>(score);
  ABSL_ASSIGN_OR_RETURN(const int64_t center, context.node.Int("center_point_box", 0));
  if (center != 0 && center != 1) return context.node.Invalid("center_point_box ", center);
  rule.is_center = center == 1;
  return rule;
}

absl::Status BuildNonMaxSuppression(NodeContext& context) {
  const Node& node = context.node;
  const Dims &boxes = context.input(0).dims, &scores = context.input(1).dims;
  if (boxes.size() != 3 || scores.size() != 3 || boxes[2] != 4 || boxes[0] != scores[0] ||
      boxes[1] != scores[2])
    return node.Invalid("boxes of dims ", DimsToString(boxes), " with scores of dims ",
                        DimsToString(scores));
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
    Late({"NonMaxSuppression", 10, 2, 5, "center_point_box", BuildNonMaxSuppression,
          Folds::kInMemory, Indices}),
};

}  // namespace tilewire::reader
