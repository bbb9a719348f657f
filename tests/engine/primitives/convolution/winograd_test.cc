// SPDX-License-Identifier: Apache-2.0
//
// The Winograd rows: accuracy against double precision, post-ops, pooling, borders, threads and
// batches, and where they are chosen.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <ostream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/primitives/pooling/pooling.h"
#include "gtest/gtest.h"
#include "tests/engine/primitives/convolution/convolution_case.h"
#include "tests/engine/primitives/convolution/exact_convolution.h"
#include "tests/engine/primitives/row_name.h"
#include "tests/support/float_tensors.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {
namespace {

using ::testing::TestWithParam;
using ::testing::ValuesIn;
using threading::Team;

using Row = ImplementationFacts;

bool IsWinograd(const ImplementationTraits& traits) {
  return traits.algorithm == convolution::kWinograd2x3 ||
         traits.algorithm == convolution::kWinograd4x3;
}

std::vector<Row> WinogradRows() {
  std::vector<Row> rows;
  for (const Implementation<ConvolutionDesc>& row : ConvolutionImplementations()) {
    if (IsWinograd(row.traits)) rows.push_back(row);
  }
  return rows;
}

ConvolutionCase Shape(const char* why, int64_t ic, int64_t oc, Dims in, Dims left = {1, 1},
                      Dims right = {}) {
  return Case(why, {1, ic, in[0], in[1]}, oc, {3, 3},
              {.left = left, .right = right.empty() ? left : right});
}

std::vector<ConvolutionCase> Shapes() {
  std::vector<ConvolutionCase> shapes = {
      Shape("one output", 1, 1, {3, 3}, {0, 0}),
      Shape("whole tiles and blocks", 32, 32, {8, 8}),
      Shape("tails of channels", 17, 33, {8, 8}),
      Shape("an odd number of output blocks", 16, 80, {9, 10}),
      Shape("output channels below a block", 24, 5, {7, 7}),
      Shape("one row and column more than tiles", 16, 16, {9, 13}),
      Shape("one row and column less than tiles", 16, 16, {7, 11}),
      Shape("two more", 16, 16, {10, 6}),
      Shape("no padding", 16, 32, {12, 9}, {0, 0}),
      Shape("padding of 2: outputs that read one pixel", 16, 16, {6, 9}, {2, 2}),
      Shape("asymmetric padding", 20, 24, {8, 9}, {0, 2}, {1, 0}),
      Shape("padding on the right only", 16, 16, {8, 8}, {0, 0}, {2, 1}),
      Shape("a tile of padding only", 16, 16, {3, 3}, {7, 5}),
      Shape("smaller than a tile", 40, 16, {2, 1}),
      Shape("many blocks of tiles", 16, 16, {45, 38}),
      Shape("inputs of a block are shared by threads", 520, 48, {9, 10}),
      Shape("several shared blocks", 320, 17, {44, 41}),
  };
  shapes.push_back(Shape("batch: a block of tiles holds several images", 20, 20, {6, 7}));
  shapes.back().batch = 5;
  shapes.push_back(Shape("no bias", 24, 24, {8, 8}));
  shapes.back().bias = false;
  return shapes;
}

Attributes PooledAttributes(std::vector<PostOp> chain) {
  chain.push_back(MaxPoolingPostOp{});
  return AttributesOf(chain);
}

// The pooling primitive's result for a row-major tensor.
std::vector<float> Pooled(const std::vector<float>& values, const Dims& dims, cpu::Isa isa) {
  const Dims pooled = {dims[0], dims[1], dims[2] / 2, dims[3] / 2};
  const PoolingDesc desc{.src = *MemoryDesc::CreatePattern(dims, DataType::kF32, "abcd"),
                         .dst = *MemoryDesc::CreatePattern(pooled, DataType::kF32, "abcd"),
                         .kernel = {2, 2},
                         .strides = {2, 2},
                         .padding_left = {0, 0},
                         .padding_right = {0, 0}};
  const auto primitive = CreatePooling(desc, {}, {.max_isa = isa});
  EXPECT_THAT(primitive, IsOk());
  std::vector<float> result(*ElementCount(pooled));
  ExecuteArgs args;
  args.Set(kArgSrc, values.data()).Set(kArgDst, result.data());
  EXPECT_THAT((*primitive)->Execute(args, Team::Serial()), IsOk());
  return result;
}

// Tells +0 from -0, but no NaN from another.
void ExpectSameBits(const std::vector<float>& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want[i]) && std::isnan(got[i])) continue;
    ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(want[i])) << "element " << i;
  }
}

class WinogradTest : public TestWithParam<Row> {
 protected:
  void SetUp() override {
    if (!cpu::Supports(GetParam().isa))
      GTEST_SKIP() << "the CPU lacks " << cpu::IsaName(GetParam().isa);
  }

  std::shared_ptr<const Primitive> Create(const ConvolutionCase& shape,
                                          const Attributes& attributes) {
    ConvolutionDesc desc = DescOf(shape);
    desc.algorithm = ConvolutionAlgorithm::kWinograd;
    auto primitive = CreateConvolution(desc, attributes, {.only = GetParam().name});
    EXPECT_THAT(primitive, IsOk()) << shape.why;
    return primitive.ok() ? *primitive : nullptr;
  }

  // The bar that the library promises where it chooses Winograd itself.
  void ExpectAccurate(const ConvolutionCase& shape, const std::vector<PostOp>& chain) {
    SCOPED_TRACE(shape.why);
    const Contents contents = RandomContents(shape);
    const auto user = Create(shape, AttributesOf(chain));
    const auto library = Create(shape, AttributesOf(chain, ScratchpadMode::kLibrary));
    ASSERT_TRUE(user != nullptr && library != nullptr);
    EXPECT_GT(user->ScratchpadDesc().SizeBytes(), 0);
    EXPECT_EQ(user->ScratchpadDesc().SizeBytes(), library->MemoryConsumptionBytes());
    bool tail_is_zero = false;
    const std::vector<float> result = Execute(*user, contents, Team::Serial(), &tail_is_zero);
    EXPECT_TRUE(tail_is_zero);
    EXPECT_EQ(result, Execute(*library, contents, Team::Serial()));
    const std::vector<double> exact = ExactConvolution(shape, contents, chain);
    ASSERT_EQ(result.size(), exact.size());
    EXPECT_LE(RelativeL2(result, exact), 1e-5);
  }

  void ExpectPoolsItsOwnResult(const ConvolutionCase& shape, const Contents& contents,
                               const std::vector<PostOp>& chain, const Team& team) {
    SCOPED_TRACE(shape.why);
    const auto plain = Create(shape, AttributesOf(chain));
    const auto pooled = Create(shape, PooledAttributes(chain));
    ASSERT_TRUE(plain != nullptr && pooled != nullptr);
    const Dims dims = shape.DstDims();
    EXPECT_EQ(pooled->Desc(kArgDst).dims(), (Dims{dims[0], dims[1], dims[2] / 2, dims[3] / 2}));
    EXPECT_EQ(pooled->Desc(kArgWeights), plain->Desc(kArgWeights));
    bool tail_is_zero = false;
    const std::vector<float> result = Execute(*pooled, contents, team, &tail_is_zero);
    EXPECT_TRUE(tail_is_zero);
    const std::vector<float> unpooled = Execute(*plain, contents, Team::Serial());
    ExpectSameBits(result, Pooled(unpooled, dims, GetParam().isa));
  }
};

TEST_P(WinogradTest, IsAccurateOnEveryShape) {
  for (const ConvolutionCase& shape : Shapes()) ExpectAccurate(shape, {});
}

// By chains of 128 input channels; products of planes have no longer ones anyway.
TEST_P(WinogradTest, SumsOfTrainingRoundLess) {
  const bool is_f32 = GetParam().traits.precision == Precision::kExact &&
                      !absl::StrContains(GetParam().name, "split");
  for (int64_t channels : {129, 520}) {
    const ConvolutionCase shape = Shape("several chains", channels, 24, {14, 14});
    const Contents contents = RandomContents(shape);
    const std::vector<double> exact = ExactConvolution(shape, contents, {});
    double errors[2] = {};
    for (bool trains : {false, true}) {
      ConvolutionDesc desc = DescOf(shape);
      desc.algorithm = ConvolutionAlgorithm::kWinograd;
      if (trains) desc.prop_kind = PropKind::kForwardTraining;
      const auto primitive = CreateConvolution(desc, {}, {.only = GetParam().name});
      ASSERT_THAT(primitive, IsOk());
      errors[trains] = RelativeL2(Execute(**primitive, contents, Team::Serial()), exact);
    }
    const double most = is_f32 && channels == 520 ? 0.8 : 1.1;
    EXPECT_LE(errors[1], most * errors[0]) << channels << " channels";
  }
}

TEST_P(WinogradTest, AppliesPostOpsInOrder) {
  const EltwisePostOp relu{};
  const EltwisePostOp logistic{.op = {.function = EltwiseAlgorithm::kLogistic}};
  const EltwisePostOp scaled{.op = {.function = EltwiseAlgorithm::kElu, .alpha = 0.5f}, .scale = 2};
  PReluPostOp prelu;
  for (int c = 0; c < 40; ++c) prelu.slopes.push_back(static_cast<float>(c % 7 - 2) * 0.25f);
  const std::vector<std::vector<PostOp>> chains = {
      {relu},
      {prelu},
      {SumPostOp{}, prelu, relu},
      {SumPostOp{}},
      {SumPostOp{.scale = 0.5f}, relu},
      {relu, SumPostOp{.scale = -2}},
      {relu, SumPostOp{}, relu},
      {logistic},
      {scaled},
      {SumPostOp{}, EltwisePostOp{.op = {.function = EltwiseAlgorithm::kAbs}}, relu, SumPostOp{}},
  };
  for (const std::vector<PostOp>& chain : chains) {
    SCOPED_TRACE(AttributesOf(chain).post_ops.ToString());
    ExpectAccurate(Shape("tails of all kinds", 20, 40, {6, 17}), chain);
  }
}

TEST_P(WinogradTest, MaxPoolingGivesTheBitsOfTwoPrimitives) {
  threading::Arena arena(3);
  for (ConvolutionCase shape : Shapes()) {
    const Dims dims = shape.DstDims();
    if (dims[2] < 2 || dims[3] < 2) continue;
    ExpectPoolsItsOwnResult(shape, RandomContents(shape), {}, Team::Serial());
    shape.batch = 3;
    ExpectPoolsItsOwnResult(shape, RandomContents(shape), {EltwisePostOp{}}, Team(&arena));
  }
}

TEST_P(WinogradTest, MaxPoolingFollowsThePostOps) {
  const EltwisePostOp relu{}, abs{.op = {.function = EltwiseAlgorithm::kAbs}},
      exp{.op = {.function = EltwiseAlgorithm::kExp}},
      negated{.op = {.function = EltwiseAlgorithm::kLinear, .alpha = -1, .beta = 2}, .scale = 3};
  for (const std::vector<PostOp>& chain :
       std::vector<std::vector<PostOp>>{{abs}, {exp}, {negated, relu}, {relu, negated, exp}}) {
    SCOPED_TRACE(AttributesOf(chain).post_ops.ToString());
    for (const Dims& in : {Dims{6, 17}, Dims{7, 5}, Dims{2, 3}}) {
      const ConvolutionCase shape = Shape("tails of all kinds", 20, 40, in);
      ExpectPoolsItsOwnResult(shape, RandomContents(shape), chain, Team::Serial());
    }
  }
}

TEST_P(WinogradTest, MaxPoolingKeepsNanAndTheSignOfZero) {
  const ConvolutionCase shape = Shape("several tiles", 16, 24, {10, 11});
  Contents contents = RandomContents(shape);
  contents.src[3 * 11 + 4] = std::numeric_limits<float>::quiet_NaN();
  contents.src[7 * 11 + 10] = -std::numeric_limits<float>::infinity();
  ExpectPoolsItsOwnResult(shape, contents, {}, Team::Serial());
  // Zeros of both signs: what is left of a product of zero by random numbers.
  contents.src.assign(contents.src.size(), 0.0f);
  contents.bias.assign(contents.bias.size(), -0.0f);
  const EltwisePostOp signs{.op = {.function = EltwiseAlgorithm::kLinear, .alpha = -1}};
  ExpectPoolsItsOwnResult(shape, contents, {}, Team::Serial());
  ExpectPoolsItsOwnResult(shape, contents, {signs}, Team::Serial());
}

TEST_P(WinogradTest, ThreadsAndBatchDoNotChangeABit) {
  threading::Arena arena(3);
  for (ConvolutionCase shape : Shapes()) {
    SCOPED_TRACE(shape.why);
    shape.batch = 3;
    const Contents contents = RandomContents(shape);
    const std::vector<float> result =
        Execute(*Create(shape, AttributesOf({})), contents, Team::Serial());
    EXPECT_EQ(result, Execute(*Create(shape, AttributesOf({})), contents, Team(&arena)));
    shape.batch = 1;
    Contents first = contents;
    first.src.resize(contents.src.size() / 3);
    first.dst.resize(contents.dst.size() / 3);
    EXPECT_EQ(std::vector<float>(result.begin(), result.begin() + first.dst.size()),
              Execute(*Create(shape, AttributesOf({})), first, Team(&arena)));
  }
}

TEST_P(WinogradTest, PartsOfLargerTensorsGiveTheBitsOfTensorsOfTheirOwn) {
  for (ConvolutionCase shape : Shapes()) {
    SCOPED_TRACE(shape.why);
    shape.batch = 2;
    const Attributes attributes = AttributesOf({SumPostOp{}});
    const auto dense = Create(shape, attributes);
    ConvolutionDesc desc = InLargerTensors(DescOf(shape), *dense);
    desc.algorithm = ConvolutionAlgorithm::kWinograd;
    ASSERT_OK_AND_ASSIGN(const auto parts,
                         CreateConvolution(desc, attributes, {.only = GetParam().name}));
    const Contents contents = RandomContents(shape);
    EXPECT_EQ(Execute(*parts, contents, Team::Serial()), Execute(*dense, contents, Team::Serial()));
  }
}

TEST_P(WinogradTest, WeightsHaveOneLayoutForEveryBatch) {
  for (ConvolutionCase shape : Shapes()) {
    SCOPED_TRACE(shape.why);
    const auto few = Create(shape, AttributesOf({}));
    shape.batch = 32;
    EXPECT_EQ(few->Desc(kArgWeights), Create(shape, AttributesOf({}))->Desc(kArgWeights));
    EXPECT_EQ(few->Desc(kArgWeights).format_kind(), FormatKind::kWinograd);
  }
}

TEST_P(WinogradTest, RefusesWhatItCannotDo) {
  const auto status = [this](const ConvolutionCase& shape) {
    ConvolutionDesc desc = DescOf(shape);
    desc.algorithm = ConvolutionAlgorithm::kWinograd;
    return CreateConvolution(desc, {}, {.only = GetParam().name}).status();
  };
  ConvolutionCase shape = Shape("", 16, 16, {8, 8});
  EXPECT_THAT(status(shape), IsOk());
  ConvolutionDesc training = DescOf(shape);
  training.algorithm = ConvolutionAlgorithm::kTraining;
  EXPECT_EQ(CreateConvolution(training, {}, {.only = GetParam().name}).ok(),
            GetParam().traits.algorithm == convolution::kWinograd2x3);
  shape.strides = {2, 2};
  EXPECT_TRUE(absl::StrContains(status(shape).message(), "is for stride 1"));
  shape.strides = {};
  shape.dilations = {1, 1};
  EXPECT_TRUE(absl::StrContains(status(shape).message(), "takes no dilation"));
  shape.dilations = {};
  shape.kernel = {5, 5};
  EXPECT_TRUE(absl::StrContains(status(shape).message(), "is for kernels of 3x3"));
  shape.kernel = {3, 3};
  shape.groups = 2;
  EXPECT_TRUE(absl::StrContains(status(shape).message(), "takes no groups"));
}

INSTANTIATE_TEST_SUITE_P(AllRows, WinogradTest, ValuesIn(WinogradRows()),
                         RowName<ImplementationFacts>);

// 1 and 1/2 are exact: where F(2,3) errs on integers, it has a wrong constant.
TEST(Winograd2x3Test, IsExactOnIntegers) {
  for (const Row& row : WinogradRows()) {
    if (row.traits.algorithm != convolution::kWinograd2x3 || !cpu::Supports(row.isa)) continue;
    const ConvolutionCase shape = Shape("", 20, 40, {9, 12});
    ConvolutionDesc desc = DescOf(shape);
    desc.algorithm = ConvolutionAlgorithm::kWinograd;
    const auto primitive = CreateConvolution(desc, AttributesOf({}), {.only = row.name});
    ASSERT_THAT(primitive, IsOk());
    const Contents contents = IntegerContents(shape);
    const std::vector<double> exact = ExactConvolution(shape, contents, {});
    EXPECT_EQ(Execute(**primitive, contents, Team::Serial()),
              std::vector<float>(exact.begin(), exact.end()));
  }
}

struct Choice {
  const char* model;
  int64_t ic, oc, size;
  convolution::Algorithm expected;
};

TEST(WinogradChoiceTest, IsTheCostModelsForTheLayersOfKnownModels) {
  if (!cpu::Supports(cpu::Isa::kAvx512)) GTEST_SKIP() << "the CPU lacks avx512";
  using enum convolution::Algorithm;
  static constexpr Choice kChoices[] = {
      {"VGG-16", 3, 64, 224, kFirstLayer},       {"VGG-16", 64, 64, 224, kWinograd4x3},
      {"VGG-16", 64, 128, 112, kWinograd4x3},    {"VGG-16", 128, 128, 112, kWinograd4x3},
      {"VGG-16", 128, 256, 56, kWinograd4x3},    {"VGG-16", 256, 256, 56, kWinograd4x3},
      {"VGG-16", 256, 512, 28, kWinograd4x3},    {"VGG-16", 512, 512, 28, kWinograd4x3},
      {"VGG-16", 512, 512, 14, kWinograd2x3},    {"ResNet-50", 64, 64, 56, kWinograd4x3},
      {"ResNet-50", 128, 128, 28, kWinograd4x3}, {"ResNet-50", 256, 256, 14, kWinograd2x3},
      {"ResNet-50", 512, 512, 7, kDirect},       {"GoogLeNet", 64, 192, 56, kWinograd4x3},
      {"GoogLeNet", 96, 128, 28, kWinograd4x3},  {"GoogLeNet", 128, 192, 28, kWinograd4x3},
      {"GoogLeNet", 96, 208, 14, kWinograd2x3},  {"GoogLeNet", 112, 224, 14, kWinograd2x3},
      {"GoogLeNet", 128, 256, 14, kWinograd2x3}, {"GoogLeNet", 144, 288, 14, kWinograd2x3},
      {"GoogLeNet", 160, 320, 14, kWinograd2x3}, {"GoogLeNet", 160, 320, 7, kDirect},
      {"GoogLeNet", 192, 384, 7, kDirect},       {"GoogLeNet", 16, 32, 28, kWinograd4x3},
  };
  for (const Choice& choice : kChoices) {
    SCOPED_TRACE(choice.model);
    for (int64_t batch : {1, 8}) {
      ConvolutionCase shape = Shape("", choice.ic, choice.oc, {choice.size, choice.size});
      shape.batch = batch;
      const auto primitive =
          CreateConvolution(DescOf(shape), AttributesOf({}), {.max_isa = cpu::Isa::kAvx512});
      ASSERT_THAT(primitive, IsOk());
      EXPECT_EQ((*primitive)->info().isa, cpu::Isa::kAvx512);
      EXPECT_EQ((*primitive)->info().traits.algorithm, choice.expected)
          << (*primitive)->name() << ": " << choice.ic << " to " << choice.oc << " channels of "
          << choice.size << " squared";
    }
  }
}

// A descriptor that gets a Winograd implementation gets the same one with pooling, so that both
// have the same bits; direct ones do not pool, so that another gets the faster of the two tiles.
TEST(WinogradChoiceTest, MaxPoolingDoesNotChangeIt) {
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
  for (const cpu::Isa isa : {cpu::Isa::kAvx2, cpu::Isa::kAvx512, cpu::Isa::kAmx}) {
    if (!cpu::Supports(isa)) continue;
    for (const int64_t size : {224, 56, 28, 14, 9, 7, 4}) {
      const ConvolutionCase shape = Shape("", 64, 128, {size, size});
      const CreateOptions options{.max_isa = isa};
      const auto plain = CreateConvolution(DescOf(shape), AttributesOf({}), options);
      const auto pooled = CreateConvolution(DescOf(shape), PooledAttributes({}), options);
      ASSERT_THAT(plain, IsOk());
      ASSERT_THAT(pooled, IsOk());
      const std::string name((*pooled)->name());
      EXPECT_TRUE(!IsWinograd((*plain)->info().traits) || name == (*plain)->name()) << name;
      EXPECT_TRUE(IsWinograd((*pooled)->info().traits)) << name;
      EXPECT_TRUE((*pooled)->info().isa == isa || isa == cpu::Isa::kAmx) << name;
    }
  }
}

// The plan of the tiles divides by their number.
TEST(WinogradChoiceTest, ABatchOfZeroDoesNotDivideByZero) {
  ConvolutionCase shape = Shape("a batch of 0", 64, 64, {28, 28});
  shape.batch = 0;
  ConvolutionDesc desc = DescOf(shape);
  const auto primitive = CreateConvolution(desc, AttributesOf({}), {});
  ASSERT_THAT(primitive, IsOk());
  EXPECT_TRUE(Execute(**primitive, RandomContents(shape), Team::Serial()).empty());
  desc.algorithm = ConvolutionAlgorithm::kWinograd;
  EXPECT_THAT(
      CreateConvolution(desc, {}, {}),
      StatusIs(absl::StatusCode::kUnimplemented,
               cpu::Supports(cpu::Isa::kAvx2) ? "takes no batch of 0" : "Winograd was asked for"));
}

TEST(WinogradChoiceTest, DirectForbidsIt) {
  ConvolutionDesc desc = DescOf(Shape("", 64, 64, {56, 56}));
  desc.algorithm = ConvolutionAlgorithm::kDirect;
  const auto primitive = CreateConvolution(desc, {}, {});
  ASSERT_THAT(primitive, IsOk());
  EXPECT_FALSE(IsWinograd((*primitive)->info().traits));
}

}  // namespace
}  // namespace tilewire::testing
