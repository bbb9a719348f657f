// SPDX-License-Identifier: Apache-2.0
//
// Losses against their formulas in double, gradients against central differences of these, and
// both against numbers of torch 1.13.
#include "engine/primitives/loss/loss.h"

#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "engine/base/aligned_buffer.h"
#include "tests/engine/primitives/gradients.h"
#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

// Settings of a loss, and its tensors row-major; one of `labels` and `targets`.
struct LossCase {
  const char* why;
  LossDesc desc;
  Dims src;
  std::vector<int64_t> labels = {};
  std::vector<float> targets = {};
};

constexpr auto kSquares = LossFunction::kMeanSquaredError;
constexpr auto kBinary = LossFunction::kBinaryCrossEntropy;
const std::vector<float> kFourWeights = {0.5f, 2, 1, 0.25f};
const std::vector<float> kDistributions = {.1f, .2f, .3f, .4f, 0, 1, 0, 0, .25f, .25f, .25f, .25f};

// Numbers between about -3 and 3.
std::vector<float> Logits(int64_t count) {
  std::vector<float> x;
  for (int64_t i = 0; i < count; ++i) x.push_back(static_cast<float>(i * 37 % 101 - 50) / 16);
  return x;
}
// Numbers between 0 and 1.
std::vector<float> Tenths(int64_t count) {
  std::vector<float> t;
  for (int64_t i = 0; i < count; ++i) t.push_back(static_cast<float>(i * 13 % 11) / 10);
  return t;
}
std::vector<int64_t> Labels(int64_t count, int64_t classes) {
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < count; ++i) labels.push_back(i * 7 % classes);
  return labels;
}

std::vector<LossCase> LossCases() {
  const LossDesc ignores = {.ignores = true, .ignore_index = 3};
  return {
      {"labels", {}, {3, 4}, {2, 0, 3}},
      {"a sum with a factor", {.mean = false, .factor = 0.3}, {3, 4}, {2, 0, 3}},
      {"class weights", {.class_weights = kFourWeights}, {3, 4}, {2, 0, 3}},
      {"label smoothing", {.label_smoothing = 0.1}, {3, 4}, {2, 0, 3}},
      {"smoothing with weights",
       {.label_smoothing = 0.25, .class_weights = kFourWeights},
       {3, 4},
       {2, 0, 3}},
      {"a class of weight 0 with smoothing",
       {.label_smoothing = 0.25, .class_weights = {1, 0, 1, 2}},
       {3, 4},
       {1, 0, 3}},
      {"an ignored label that is a class", ignores, {4, 5}, {1, 3, 0, 3}},
      {"an ignored label outside",
       {.label_smoothing = 0.1, .ignores = true, .ignore_index = -100},
       {3, 4},
       {2, -100, 1}},
      {"one class", {}, {3, 1}, {0, 0, 0}},
      {"more classes than one vector", {}, {5, 37}, Labels(5, 37)},
      {"more classes than one block", {.label_smoothing = 0.1}, {2, 700}, Labels(2, 700)},
      {"a label per pixel", {.class_weights = {1, 2, 3}}, {2, 3, 4, 5}, Labels(40, 3)},
      {"a label per point", ignores, {2, 19, 6}, Labels(12, 19)},
      {"probabilities", {}, {3, 4}, {}, kDistributions},
      {"probabilities, smoothed and weighted",
       {.label_smoothing = 0.1, .class_weights = kFourWeights},
       {3, 4},
       {},
       kDistributions},
      {"probabilities per pixel", {.factor = 2}, {2, 3, 2, 3}, {}, Tenths(36)},
      {"binary", {.algorithm = kBinary}, {3, 4}, {}, Tenths(12)},
      {"binary, of images", {.algorithm = kBinary, .mean = false}, {2, 3, 4, 2}, {}, Tenths(48)},
      {"binary, with class weights",
       {.algorithm = kBinary, .class_weights = kFourWeights},
       {3, 4},
       {},
       Tenths(12)},
      {"binary, of images, with class weights",
       {.algorithm = kBinary, .mean = false, .class_weights = {0.5f, 0, 2}},
       {2, 3, 4, 2},
       {},
       Tenths(48)},
      {"squares", {.algorithm = kSquares, .factor = 0.5}, {3, 4}, {}, Tenths(12)},
      {"squares of volumes", {.algorithm = kSquares}, {2, 2, 2, 3, 2}, {}, Tenths(48)},
      {"huber", {.algorithm = LossFunction::kHuber, .delta = 0.75}, {3, 4}, {}, Tenths(12)},
  };
}

double Term(const LossDesc& desc, double x, double t) {
  const double d = std::abs(x - t);
  if (desc.algorithm == kSquares) return d * d;
  if (desc.algorithm == LossFunction::kHuber)
    return d <= desc.delta ? d * d / 2 : desc.delta * (d - desc.delta / 2);
  return -t * std::log(1 / (1 + std::exp(-x))) - (1 - t) * std::log(1 / (1 + std::exp(x)));
}

// loss.h in double. Tensors of N images, C classes and P positions.
double LossOf(const LossCase& one, const Doubles& x) {
  const LossDesc& desc = one.desc;
  const auto count = static_cast<int64_t>(x.size());
  double sum = 0, divisor = 0;
  if (desc.algorithm != LossFunction::kSoftmaxCrossEntropy) {
    int64_t positions = 1;
    for (size_t d = 2; d < one.src.size(); ++d) positions *= one.src[d];
    for (int64_t i = 0; i < count; ++i) {
      const std::vector<float>& weights = desc.class_weights;
      const double weight = weights.empty() ? 1 : weights[i / positions % one.src[1]];
      sum += weight * Term(desc, x[i], one.targets[i]);
    }
    return desc.factor * sum / (desc.mean ? static_cast<double>(count) : 1);
  }
  const int64_t classes = one.src[1], positions = count / one.src[0] / classes;
  for (int64_t n = 0; n < one.src[0]; ++n) {
    for (int64_t p = 0; p < positions; ++p) {
      const auto place = [&](int64_t c) { return (n * classes + c) * positions + p; };
      const int64_t label = one.labels.empty() ? -1 : one.labels[n * positions + p];
      if (desc.ignores && label == desc.ignore_index) continue;
      double exponentials = 0;
      for (int64_t c = 0; c < classes; ++c) exponentials += std::exp(x[place(c)]);
      for (int64_t c = 0; c < classes; ++c) {
        const double weight = desc.class_weights.empty() ? 1 : desc.class_weights[c];
        const double t = one.labels.empty() ? one.targets[place(c)] : (c == label ? 1 : 0);
        const double q = (1 - desc.label_smoothing) * t + desc.label_smoothing / classes;
        sum -= weight * q * (x[place(c)] - std::log(exponentials));
        if (c == label) divisor += weight;
      }
      if (label < 0) divisor += 1;
    }
  }
  return desc.factor * sum / (desc.mean ? divisor : 1);
}

struct Result {
  float loss;
  std::vector<float> gradient;  // row-major
  Bytes bytes;                  // of the gradient
};

class LossTest : public RowTest<LossDesc> {
 protected:
  LossTest() : RowTest(CreateLoss) {}

  // The descriptor of a case; targets are laid out as `src` is.
  static LossDesc DescOf(const LossCase& one, const MemoryDesc& src, DataType labels) {
    LossDesc desc = one.desc;
    desc.src = desc.targets = desc.diff_src = src;
    desc.dst = Plain({1});
    if (one.labels.empty()) return desc;
    Dims dims = one.src;
    dims.erase(dims.begin() + 1);
    desc.targets = Plain(dims, labels);
    return desc;
  }

  static Bytes TargetsOf(const LossCase& one, const MemoryDesc& desc) {
    if (one.labels.empty()) return Pack(desc, one.targets);
    if (desc.data_type() == DataType::kS64) return Pack(desc, one.labels);
    return Pack(desc, std::vector<int32_t>(one.labels.begin(), one.labels.end()));
  }

  static Result RunOnce(const Primitive& primitive, const LossDesc& desc, const Bytes& x,
                        const Bytes& targets, const threading::Team& team) {
    Bytes dst = Garbage(desc.dst, 3), gradient = Garbage(desc.src, 5);
    AlignedBuffer scratch = *AlignedBuffer::Allocate(primitive.ScratchpadDesc().SizeBytes());
    ExecuteArgs args;
    args.Set(kArgSrc, x.data()).Set(kArgSrc1, targets.data()).Set(kArgDst, dst.data());
    args.Set(kArgScratchpad, scratch.data());
    if (!desc.diff_src.IsZero()) args.Set(kArgDiffSrc, gradient.data());
    EXPECT_THAT(primitive.Execute(args, team), IsOk());
    const MemoryDesc& gradient_desc = primitive.Desc(kArgDiffSrc);
    Result result{Unpack<float>(desc.dst, dst)[0], {}, gradient};
    if (!gradient_desc.IsZero()) result.gradient = Unpack<float>(gradient_desc, gradient);
    return result;
  }

  // In both modes on 1, 2 and 7 threads, with the same bytes.
  static Result RunAllWays(const Created& created, const LossDesc& desc, const Bytes& x,
                           const Bytes& targets) {
    static threading::Arena* const arenas[] = {new threading::Arena(2), new threading::Arena(7)};
    const Result first = RunOnce(*created.library, desc, x, targets, threading::Team::Serial());
    for (const auto& primitive : {created.library, created.user}) {
      for (threading::Arena* arena : arenas) {
        const Result again = RunOnce(*primitive, desc, x, targets, threading::Team(arena));
        EXPECT_EQ(BitsOf({first.loss}), BitsOf({again.loss}));
        EXPECT_EQ(first.bytes, again.bytes);
      }
    }
    return first;
  }

  std::optional<Result> Run(const LossCase& one, const LossDesc& desc) {
    const auto primitive = Create(desc);
    if (!primitive) return std::nullopt;
    const Bytes x = Pack(desc.src, Logits(desc.src.ElementCount()));
    return RunAllWays(*primitive, desc, x, TargetsOf(one, desc.targets));
  }
};

TEST_P(LossTest, EveryCase) {
  for (const LossCase& one : LossCases()) {
    const std::vector<float> x = Logits(*ElementCount(one.src));
    const Doubles exact = ToDoubles(x);
    const double loss = LossOf(one, exact);
    const Doubles gradient = CentralDifferences(
        exact, {1}, [&](const Doubles& moved) { return Doubles{LossOf(one, moved)}; });
    for (const Layout& layout : LayoutsOf(one.src)) {
      SCOPED_TRACE(absl::StrCat(one.why, ", ", layout.why));
      const auto result = Run(one, DescOf(one, layout.desc, DataType::kS64));
      if (!result) continue;
      EXPECT_NEAR(result->loss, loss, 1e-6 * (1 + std::abs(loss)));
      ExpectGradient(result->gradient, gradient, 2e-7 + 1e-9);
    }
  }
}

TEST_P(LossTest, LabelsOfBothTypesAndALossAloneGiveTheSame) {
  for (const LossCase& one : LossCases()) {
    const MemoryDesc src = one.src.size() == 4 ? Tagged(one.src, "nhwc") : Plain(one.src);
    const LossDesc wide = DescOf(one, src, DataType::kS64);
    const auto with = Run(one, wide), narrow = Run(one, DescOf(one, src, DataType::kS32));
    LossDesc alone = wide;
    alone.diff_src = MemoryDesc();
    const auto without = Run(one, alone);
    if (!with || !narrow || !without) continue;
    EXPECT_EQ(with->bytes, narrow->bytes) << one.why;
    EXPECT_EQ(BitsOf({with->loss, with->loss}), BitsOf({narrow->loss, without->loss})) << one.why;
  }
}

TEST_P(LossTest, NumbersOfTorch) {
  struct Expectation {
    LossCase one;
    double loss;
    std::vector<double> gradient;  // its first elements
  };
  const std::vector<int64_t> labels = {2, 0, 3};
  const Expectation expectations[] = {
      {{"mean", {}, {3, 4}, labels},
       2.85723131218,
       {0.00289929039, 0.02928179565, -0.03759767359, 0.00541658755, -0.3079903212, 0.2559553554}},
      {{"sum", {.mean = false}, {3, 4}, labels},
       8.57169393653,
       {0.00869787117, 0.08784538694, -0.1127930208, 0.01624976265, -0.9239709636, 0.7678660662}},
      {{"weights", {.class_weights = kFourWeights}, {3, 4}, labels},
       1.64390925996,
       {0.004970212097, 0.05019736396, -0.06445315472, 0.009285578658, -0.2639917039,
        0.2193903046}},
      {{"smoothing", {.label_smoothing = 0.1}, {3, 4}, labels},
       2.84316881218,
       {-0.005434042943, 0.02094846231, -0.01259767359, -0.002916745783, -0.2829903212,
        0.2476220221}},
      {{"smoothing and weights",
        {.label_smoothing = 0.1, .class_weights = kFourWeights},
        {3, 4},
        labels},
       1.86193050914,
       {-0.002203708871, 0.02131220187, -0.02476460822, 0.00565611522, -0.2406624066,
        0.2100155277}},
      {{"ignored", {.ignores = true, .ignore_index = 0}, {3, 4}, labels},
       2.99752699124,
       {0.004348935585, 0.04392269347, -0.05639651038, 0.008124881326, 0, 0}},
      {{"all three",
        {.label_smoothing = 0.1, .ignores = true, .ignore_index = 0, .class_weights = kFourWeights},
        {3, 4},
        labels},
       1.54773933278,
       {-0.00308519242, 0.02983708262, -0.0346704515, 0.007918561308, 0, 0}},
      {{"probabilities", {}, {3, 4}, {}, kDistributions},
       1.98014797884,
       {-0.03043404294, -0.03738487102, 0.1957356597, -0.1279167458, 0.02534301213,
        -0.07737797794}},
      {{"weighted probabilities",
        {.label_smoothing = 0.1, .class_weights = kFourWeights},
        {3, 4},
        {},
        kDistributions},
       1.76499390322,
       {-0.01667690104, -0.1115209247, 0.1556296645, -0.02743183877, 0.04382666255, -0.1319512124}},
      {{"images",
        {.ignores = true, .ignore_index = -100, .class_weights = kFourWeights},
        {2, 4, 2, 2},
        {0, 1, 2, 3, 3, 3, 1, -100}},
       2.9819992077,
       {-0.07979385469, 0.009786902958, 0.09400928629, 0.00122336287, 0.003889676645,
        -0.1353346886}},
      {{"binary", {.algorithm = kBinary}, {3, 4}, {}, Tenths(12)},
       0.689402707882,
       {0.00350731066, 0.008946501405, 0.03479787302, -0.043678485, -0.028894846, -0.008890882829}},
      {{"binary, weighted",
        {.algorithm = kBinary, .class_weights = kFourWeights},
        {3, 4},
        {},
        Tenths(12)},
       0.591605262886,
       {0.00175365533, 0.01789300281, 0.03479787302, -0.01091962125, -0.014447423, -0.01778176566}},
      {{"binary of images, weighted",
        {.algorithm = kBinary, .class_weights = kFourWeights},
        {2, 4, 2, 2},
        {},
        Tenths(32)},
       0.609510277641,
       {0.0006576207487, 0.001677469014, 0.006524601191, -0.008189715937, -0.0216711345,
        -0.006668162122}},
      {{"squares", {.algorithm = kSquares}, {3, 4}, {}, Tenths(12)},
       3.77428385417,
       {-0.5208333333, -0.16875, 0.1833333333, -0.5166666667, -0.1645833333, 0.1875}},
      {{"huber", {.algorithm = LossFunction::kHuber, .delta = 0.75}, {3, 4}, {}, Tenths(12)},
       0.990169270833,
       {-0.0625, -0.0625, 0.0625, -0.0625, -0.0625, 0.0625}},
  };
  for (const auto& [one, loss, gradient] : expectations) {
    SCOPED_TRACE(one.why);
    const MemoryDesc src = one.src.size() == 4 ? Tagged(one.src, "nhwc") : Plain(one.src);
    const auto result = Run(one, DescOf(one, src, DataType::kS64));
    if (!result) continue;
    EXPECT_NEAR(result->loss, loss, 3e-7 * loss);
    for (size_t i = 0; i < gradient.size(); ++i)
      EXPECT_NEAR(result->gradient[i], gradient[i], 1e-7) << i;
  }
}

TEST_P(LossTest, LargeLogitsOverflowNothing) {
  const LossCase labels{"", {}, {2, 3}, {0, 1}};
  const LossCase binary{"", {.algorithm = kBinary, .mean = false}, {2, 3}, {}, {1, 0, 0, 0, 1, 1}};
  const std::vector<float> x = {500, -500, 0, -1000, 1000, 88};
  for (const LossCase& one : {labels, binary}) {
    const LossDesc desc = DescOf(one, Plain(one.src), DataType::kS32);
    const auto primitive = Create(desc);
    ASSERT_TRUE(primitive);
    const Bytes bytes = Pack(desc.src, x), targets = TargetsOf(one, desc.targets);
    const Result result = RunAllWays(*primitive, desc, bytes, targets);
    EXPECT_NEAR(result.loss, one.labels.empty() ? std::log(2) : 0, 1e-6);
    for (float gradient : result.gradient) EXPECT_LE(std::abs(gradient), 0.5);
  }
}

TEST_P(LossTest, TheMeanOfNothingIsNotANumberAndTheSumIsZero) {
  for (bool mean : {true, false}) {
    const LossCase one{"", {.mean = mean, .ignores = true, .ignore_index = 1}, {2, 3}, {1, 1}};
    const auto result = Run(one, DescOf(one, Plain(one.src), DataType::kS64));
    ASSERT_TRUE(result);
    EXPECT_EQ(std::isnan(result->loss), mean);
    EXPECT_EQ(result->gradient, std::vector<float>(6, 0));
  }
}

TEST_P(LossTest, TargetsThatAreRefusedWriteNothing) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::pair<LossCase, const char*> cases[] = {
      {{"", {}, {2, 3}, {2, 3}}, "label [1] is 3; allowed: 0 to 2"},
      {{"", {}, {2, 3, 2}, {2, 1, -1, 0}}, "label [1, 0] is -1; allowed: 0 to 2"},
      {{"", {.ignores = true, .ignore_index = -1}, {2, 3}, {-1, -2}},
       "label [1] is -2; allowed: 0 to 2, and -1"},
      {{"", {}, {1, 3}, {}, {0, 1.5f, 0}}, "target [0, 1] is 1.5; allowed: probabilities"},
      {{"", {.algorithm = kBinary}, {1, 3}, {}, {0, 1, nan}}, "target [0, 2] is nan"},
  };
  for (const auto& [one, message] : cases) {
    const LossDesc desc =
        DescOf(one, one.src.size() == 3 ? Tagged(one.src, "nwc") : Plain(one.src), DataType::kS32);
    const auto primitive = Create(desc);
    ASSERT_TRUE(primitive);
    const Bytes x = RandomTensor(desc.src, 1, 1), targets = TargetsOf(one, desc.targets);
    const Bytes before = Garbage(desc.dst, 2), gradient_before = Garbage(desc.src, 3);
    Bytes dst = before, gradient = gradient_before;
    ExecuteArgs args;
    args.Set(kArgSrc, x.data()).Set(kArgSrc1, targets.data());
    args.Set(kArgDst, dst.data()).Set(kArgDiffSrc, gradient.data());
    EXPECT_THAT(primitive->library->Execute(args, threading::Team::Serial()),
                StatusIs(kInvalid, message));
    EXPECT_EQ(before, dst);
    EXPECT_EQ(gradient_before, gradient);
  }
}

TILEWIRE_TEST_EVERY_ROW(Loss);

LossDesc LossOfLabels() {
  LossDesc desc;
  desc.src = desc.diff_src = Plain({2, 3});
  desc.targets = Plain({2}, DataType::kS64);
  desc.dst = Plain({1});
  return desc;
}

TEST(LossErrorsTest, CreationNamesWhatDoesNotFit) {
  const auto status = StatusOfCreating(CreateLoss);
  EXPECT_THAT(status(LossOfLabels()), IsOk());
  const auto refused = [&](absl::StatusCode code, const char* message,
                           const std::function<void(LossDesc&)>& change) {
    LossDesc desc = LossOfLabels();
    change(desc);
    EXPECT_THAT(status(desc), StatusIs(code, message));
  };
  refused(kInvalid, "dst is f32:2", [](LossDesc& d) { d.dst = Plain({2}); });
  refused(kInvalid, "has no classes", [](LossDesc& d) { d.src = d.diff_src = Plain({2}); });
  refused(kInvalid, "targets s64:3", [](LossDesc& d) { d.targets = Plain({3}, DataType::kS64); });
  refused(kInvalid, "diff_src", [](LossDesc& d) { d.diff_src = Plain({3, 2}); });
  refused(kInvalid, "factor inf", [](LossDesc& d) { d.factor = INFINITY; });
  refused(kInvalid, "delta 0", [](LossDesc& d) { d.delta = 0; });
  refused(kInvalid, "label smoothing 1", [](LossDesc& d) { d.label_smoothing = 1; });
  refused(kInvalid, "2 class weights for 3", [](LossDesc& d) { d.class_weights = {1, 1}; });
  refused(kInvalid, "class weight is -1", [](LossDesc& d) { d.class_weights = {1, -1, 1}; });
  refused(kUnimplemented, "u8", [](LossDesc& d) { d.targets = Plain({2}, DataType::kU8); });
  refused(kUnimplemented, "not bf16", [](LossDesc& d) {
    d.src = d.diff_src = Plain({2, 3}, DataType::kBf16);
  });
}

TEST(LossErrorsTest, SettingsBelongToTheirLosses) {
  const auto status = StatusOfCreating(CreateLoss);
  const auto refused = [&](const char* message, LossFunction algorithm,
                           const std::function<void(LossDesc&)>& change) {
    LossDesc desc = LossOfLabels();
    desc.algorithm = algorithm;
    desc.targets = desc.src;
    change(desc);
    EXPECT_THAT(status(desc), StatusIs(kInvalid, message));
  };
  const auto smooth = [](LossDesc& d) { d.label_smoothing = 0.5; };
  const auto weigh = [](LossDesc& d) { d.class_weights = {1, 1, 1}; };
  refused("mean_squared_error has no label smoothing", kSquares, smooth);
  refused("binary_cross_entropy has no label smoothing", kBinary, smooth);
  refused("mean_squared_error has no class weights", kSquares, weigh);
  refused("huber has no class weights", LossFunction::kHuber, weigh);
  refused("2 class weights for 3", kBinary, [](LossDesc& d) { d.class_weights = {1, 1}; });
  refused("has no classes", kBinary, [](LossDesc& d) {
    d.src = d.diff_src = d.targets = Plain({2});
    d.class_weights = {1, 1};
  });
  for (LossFunction algorithm : {kSquares, kBinary})
    refused("only labels can be ignored", algorithm, [](LossDesc& d) { d.ignores = true; });
}

}  // namespace
}  // namespace tilewire::testing
