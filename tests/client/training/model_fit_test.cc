// SPDX-License-Identifier: Apache-2.0
#include "client/training/model_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/client/training/fake_trainer.h"
#include "tests/support/status_matchers.h"

namespace tilewire::client {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;
using tilewire::testing::IsOk;
using tilewire::testing::StatusIs;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// Two examples of bytes 0, 1, 2, ...
InputArray ByteExamples(const std::vector<int64_t>& shape, Layout layout = Layout::kNchw) {
  InputArray inputs{.source = "--images=a.u8", .array = {"UINT8", shape, {}}, .layout = layout};
  inputs.array.shape.insert(inputs.array.shape.begin(), 2);
  int64_t count = 1;
  for (const int64_t dim : inputs.array.shape) count *= dim;
  for (int64_t i = 0; i < count; ++i) inputs.array.bytes += static_cast<char>(i);
  return inputs;
}

TensorSpec Spec(const Dims& dims, DataType type = DataType::kF32) {
  return {.name = "image", .type = type, .dims = dims};
}

TEST(FitInputs, PlacesExamplesAsTheModelHasThem) {
  using EngineLayout = ::tilewire::Layout;
  const struct {
    const char* why;
    InputArray inputs;
    TensorSpec input;
    Dims dims;
    EngineLayout layout;
    std::string first;  // of the examples' bytes
  } kCases[] = {
      {"planes as planes",
       ByteExamples({2, 1, 3}),
       Spec({-1, 2, 1, 3}),
       {2, 1, 3},
       EngineLayout::kNchw,
       {0, 1, 2, 3, 4, 5}},
      {"open sizes",
       ByteExamples({2, 1, 3}),
       Spec({-1, 2, -1, -1}),
       {2, 1, 3},
       EngineLayout::kNchw,
       {0, 1, 2, 3, 4, 5}},
      {"planes as pixels",
       ByteExamples({2, 1, 3}),
       Spec({-1, 1, 3, 2}),
       {1, 3, 2},
       EngineLayout::kNchw,
       {0, 3, 1, 4, 2, 5}},
      {"pixels for planes, which the engine reads",
       ByteExamples({1, 3, 2}, Layout::kNhwc),
       Spec({-1, 2, 1, 3}),
       {2, 1, 3},
       EngineLayout::kNhwc,
       {0, 1, 2, 3, 4, 5}},
      {"pixels as pixels",
       ByteExamples({1, 2, 3}, Layout::kNhwc),
       Spec({-1, 1, 2, 3}),
       {1, 2, 3},
       EngineLayout::kNchw,
       {0, 1, 2, 3, 4, 5}},
      {"rows of numbers",
       ByteExamples({6}),
       Spec({-1, 6}),
       {6},
       EngineLayout::kNchw,
       {0, 1, 2, 3, 4, 5}},
      {"any shape",
       ByteExamples({6}),
       {.name = "x", .any_rank = true},
       {6},
       EngineLayout::kNchw,
       {0, 1, 2, 3, 4, 5}},
  };
  for (const auto& one : kCases) {
    SCOPED_TRACE(one.why);
    ASSERT_OK_AND_ASSIGN(const FittedInputs fitted, FitInputs(one.input, one.inputs));
    EXPECT_EQ(fitted.tensors.dims, one.dims);
    EXPECT_EQ(fitted.tensors.layout, one.layout);
    EXPECT_EQ(fitted.tensors.size, 6);
    EXPECT_EQ(fitted.tensors.count(), 2);
    EXPECT_EQ(fitted.tensors.bytes.substr(0, 6), one.first);
    EXPECT_THAT(fitted.values.of_channel, SizeIs(1)) << "one mean for all channels";
  }
}

TEST(FitInputs, NumbersThatAreNotFiniteAreRefusedWithTheirExample) {
  const auto fit = [](const std::vector<float>& numbers) {
    return FitInputs(Spec({-1, 2}), {.source = "--images=x.npy",
                                     .array = {"FP32", {2, 2}, BytesOf<float>(numbers)}})
        .status();
  };
  EXPECT_THAT(fit({1, 2, 3, 4}), IsOk());
  EXPECT_THAT(fit({1, 2, 3, NAN}), StatusIs(kInvalid, "--images=x.npy: example 1 has nan, which"));
  EXPECT_THAT(fit({INFINITY, 2, 3, 4}), StatusIs(kInvalid, "example 0 has inf"));
}

TEST(FitInputs, EachChannelHasItsMean) {
  const struct {
    const char* why;
    InputArray inputs;
    Dims dims;
    int64_t run;
  } kCases[] = {{"planes", ByteExamples({3, 2, 2}), {-1, 3, 2, 2}, 4},
                {"pixels", ByteExamples({2, 2, 3}, Layout::kNhwc), {-1, 3, 2, 2}, 1},
                {"planes that become pixels", ByteExamples({3, 2, 2}), {-1, 2, 2, 3}, 1}};
  for (const auto& one : kCases) {
    SCOPED_TRACE(one.why);
    InputArray inputs = one.inputs;
    inputs.normalization = {.scale = 1, .mean = {1, 2, 3}, .std = {1}};
    ASSERT_OK_AND_ASSIGN(const FittedInputs fitted, FitInputs(Spec(one.dims), inputs));
    ASSERT_THAT(fitted.values.of_channel, SizeIs(3));
    EXPECT_EQ(fitted.values.run, one.run);
    for (int c = 0; c < 3; ++c) EXPECT_EQ(fitted.values.of_channel[c][10], 10 - (c + 1));
  }
}

TEST(FitInputs, ElementsOfTheInputsTypeAreTakenAsTheyAre) {
  const InputArray floats{.source = "--images=a.npy", .array = {"FP32", {1, 2}, "abcdefgh"}};
  ASSERT_OK_AND_ASSIGN(const FittedInputs fitted, FitInputs(Spec({-1, 2}), floats));
  EXPECT_EQ(fitted.tensors.bytes, "abcdefgh");
  EXPECT_EQ(fitted.tensors.size, 8);
  EXPECT_THAT(fitted.values.of_channel, SizeIs(0));
  EXPECT_THAT(FitInputs(Spec({-1, 4}, DataType::kU8), ByteExamples({4})), IsOk());
}

TEST(FitInputs, SaysWhatDoesNotFit) {
  InputArray floats{.source = "--images=a.f32", .array = {"FP32", {1, 2}, "abcdefgh"}};
  InputArray scaled = floats, three = ByteExamples({1, 2, 2});
  scaled.is_normalized_by_user = true;
  three.normalization.mean = {1, 2, 3};
  const struct {
    InputArray inputs;
    TensorSpec input;
    const char* message;
  } kCases[] = {
      {ByteExamples({3, 20, 24}), Spec({-1, 3, 24, 20}),
       "--images=a.u8: examples of 3x20x24 do not fit the input 'image', which is Nx3x24x20"},
      {ByteExamples({3, 24, 20}, Layout::kNhwc), Spec({-1, 3, 24, 20}),
       "examples of 3x24x20 in nhwc do not fit the input 'image', which is Nx3x24x20"},
      {ByteExamples({3, 4, 4}), Spec({3, 4, 4}), "do not fit the input 'image', which is 3x4x4"},
      {ByteExamples({4}), Spec({-1, 4}, DataType::kS64),
       "--images=a.u8 holds UINT8; the input 'image' takes INT64"},
      {floats, Spec({-1, 2}, DataType::kU8), "holds FP32; the input 'image' takes UINT8"},
      {{.source = "--images=a.npy", .array = {"FP64", {1, 1}, "abcdefgh"}},
       Spec({-1, 1}),
       "holds FP64; the input 'image' takes FP32 or bytes (UINT8): in Python, "
       "numpy.save(file, array.astype(numpy.float32)) writes such a file"},
      {scaled, Spec({-1, 2}),
       "--scale, --mean and --std turn bytes into floats; --images=a.f32 holds FP32"},
      {three, Spec({-1, 1, 2, 2}),
       "--mean has 3 values; the examples of --images=a.u8 have 1 channel"},
  };
  for (const auto& one : kCases)
    EXPECT_THAT(FitInputs(one.input, one.inputs), StatusIs(kInvalid, one.message));
}

TEST(CheckBatchFits, AModelMayTakeBatchesOfOneSizeOnly) {
  EXPECT_THAT(CheckBatchFits(Spec({-1, 3}), 32, 33), IsOk());
  EXPECT_THAT(CheckBatchFits(Spec({8, 3}), 8, 32), IsOk());
  EXPECT_THAT(CheckBatchFits(Spec({8, 3}), 32, 64),
              StatusIs(kInvalid, "--batch=32: the model takes batches of 8 only"));
  EXPECT_THAT(CheckBatchFits(Spec({8, 3}), 8, 33),
              StatusIs(kInvalid, "the 33 examples that are trained on are not a multiple of it"));
}

const TensorSpec kClasses = {.name = "t", .type = DataType::kS64, .dims = {-1}};
const TensorSpec kTenLogits = {.name = "logits", .dims = {-1, 10}};
constexpr auto kEntropy = LossSpec::Kind::kSoftmaxCrossEntropy;

LabelArray ByteLabels(const std::string& bytes) {
  return {"--labels=a.u8", {"UINT8", {static_cast<int64_t>(bytes.size())}, bytes}};
}

template <typename T>
std::vector<T> TargetsOf(const ExampleTensors& targets) {
  return ElementsOf<T>({.pieces = {targets.bytes}});
}

TEST(FitTargets, LabelsBecomeWhatTheTrainerTakes) {
  ASSERT_OK_AND_ASSIGN(const ExampleTensors wide,
                       FitTargets({kEntropy}, kClasses, kTenLogits, ByteLabels({0, 9, 3}), 3));
  EXPECT_THAT(TargetsOf<int64_t>(wide), ElementsAre(0, 9, 3));
  EXPECT_EQ(wide.size, 8);
  EXPECT_EQ(wide.dims, Dims());
  const TensorSpec narrow_classes = {.type = DataType::kS32, .dims = {-1}};
  ASSERT_OK_AND_ASSIGN(const ExampleTensors narrow,
                       FitTargets({kEntropy}, narrow_classes, kTenLogits, ByteLabels({7}), 1));
  EXPECT_THAT(TargetsOf<int32_t>(narrow), ElementsAre(7));
  const TensorSpec floats = {.type = DataType::kF32, .dims = {-1, 2}};
  ASSERT_OK_AND_ASSIGN(
      const ExampleTensors pairs,
      FitTargets({LossSpec::Kind::kMeanSquaredError}, floats, floats, ByteLabels({1, 2, 3, 4}), 2));
  EXPECT_THAT(TargetsOf<float>(pairs), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(pairs.dims, Dims{2});
  EXPECT_EQ(pairs.count(), 2);
}

TEST(FitTargets, OpenSizesAreThoseOfTheFile) {
  const TensorSpec maps = {.type = DataType::kS64, .dims = {-1, -1, -1}};
  const TensorSpec scores = {.name = "out", .dims = {-1, 3, -1, -1}};
  const LabelArray labels{"--labels=a.npy", {"UINT8", {2, 1, 2}, {0, 1, 2, 0}}};
  ASSERT_OK_AND_ASSIGN(const ExampleTensors targets,
                       FitTargets({kEntropy}, maps, scores, labels, 2));
  EXPECT_EQ(targets.dims, (Dims{1, 2}));
  EXPECT_EQ(targets.size, 16);
}

TEST(FitTargets, SaysWhichLabelIsWrong) {
  const TensorSpec one_float = {.type = DataType::kF32, .dims = {-1, 1}};
  const auto float_label = [](float label) {
    return LabelArray{"--labels=a.f32", {"FP32", {1}, BytesOf<float>({label})}};
  };
  const struct {
    LossSpec::Kind loss;
    TensorSpec target, output;
    LabelArray labels;
    int64_t count;
    const char* message;
  } kCases[] = {
      {kEntropy, kClasses, kTenLogits, ByteLabels({0, 10, 3}), 3,
       "--labels=a.u8: 10 of example 1 is not one of the 10 classes 0 to 9 (output 'logits', which "
       "is Nx10)"},
      {kEntropy,
       kClasses,
       kTenLogits,
       {"--labels=a.s32", {"INT32", {1}, BytesOf<int32_t>({-1})}},
       1,
       "--labels=a.s32: -1 of example 0 is not one of the 10 classes"},
      {kEntropy,
       kClasses,
       {.name = "y", .dims = {-1, -1}},
       {"--labels=a.s32", {"INT32", {1}, BytesOf<int32_t>({-1})}},
       1,
       "is not a class, which are numbers from 0"},
      {kEntropy, kClasses, kTenLogits, ByteLabels({0, 1}), 3,
       "--labels=a.u8 is of shape 2; 3 examples need one label each"},
      {kEntropy,
       kClasses,
       kTenLogits,
       {"--labels=a.npy", {"UINT8", {1, 3}, "abc"}},
       3,
       "--labels=a.npy is of shape 1x3; 3 examples need one label each"},
      {kEntropy,
       kClasses,
       {.name = "y", .dims = {-1, 1}},
       ByteLabels({1}),
       1,
       "has one number: --loss=mse, huber or binary_cross_entropy"},
      {kEntropy, kClasses, kTenLogits, float_label(1), 1,
       "--labels=a.f32 holds FP32; cross_entropy takes classes, which are integers"},
      {LossSpec::Kind::kBinaryCrossEntropy, one_float, one_float, float_label(1.5), 1,
       "1.5 of example 0 is not in 0 to 1, which binary_cross_entropy takes"},
      {LossSpec::Kind::kBinaryCrossEntropy, one_float, one_float, float_label(std::nanf("")), 1,
       "nan of example 0 is not in 0 to 1"},
      {LossSpec::Kind::kHuber, one_float, one_float, float_label(INFINITY), 1,
       "inf of example 0 is not finite"},
      {LossSpec::Kind::kMeanSquaredError,
       {.type = DataType::kF32, .dims = {-1, 2, 3}},
       kTenLogits,
       float_label(1),
       1,
       "--labels=a.f32 is of shape 1; 1 example needs targets of 2x3 each"},
  };
  for (const auto& one : kCases) {
    EXPECT_THAT(FitTargets({one.loss}, one.target, one.output, one.labels, one.count),
                StatusIs(kInvalid, one.message));
  }
}

TEST(SpecOf, IsMetadataTheOtherWayRound) {
  for (const DataType type : {DataType::kF32, DataType::kU8, DataType::kS64, DataType::kBool}) {
    const TensorSpec spec = Spec({-1, 3, 4}, type);
    ASSERT_OK_AND_ASSIGN(const TensorSpec back, SpecOf(MetadataOf(spec)));
    EXPECT_EQ(back.name, spec.name);
    EXPECT_EQ(back.type, spec.type);
    EXPECT_EQ(back.dims, spec.dims);
  }
  EXPECT_THAT(SpecOf({.name = "text", .datatype = "BYTES"}),
              StatusIs(kInvalid, "'text' takes BYTES, which no array has"));
}

TEST(OutputOf, IsTheFirstOrTheNamedOne) {
  const ModelSignature signature{{Spec({-1, 3})}, {{.name = "logits"}, {.name = "f\033"}}};
  EXPECT_EQ(*OutputOf(signature, ""), 0);
  EXPECT_EQ(*OutputOf(signature, "f\033"), 1);
  EXPECT_THAT(
      OutputOf(signature, "g"),
      StatusIs(kInvalid, "--loss_output=g: the model has no such output; it has logits, f?"));
  EXPECT_EQ(OnlyInput(signature)->name, "image");
  EXPECT_THAT(OnlyInput({{Spec({}), Spec({})}, {}}), StatusIs(kInvalid, "the model has 2 inputs"));
  EXPECT_THAT(OnlyInput({}), StatusIs(kInvalid, "the model has 0 inputs"));
}

}  // namespace
}  // namespace tilewire::client
