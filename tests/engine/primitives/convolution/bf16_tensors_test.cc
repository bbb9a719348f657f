// SPDX-License-Identifier: Apache-2.0
//
// Convolutions whose src or dst is bf16: each does what its row does with tensors of f32 that hold
// the same numbers, and dst is what that gives, rounded. Every bit of it: implementations_test.cc
// compares these rows with the reference.
#include <ostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "engine/memory/narrow_floats.h"
#include "gtest/gtest.h"
#include "tests/engine/primitives/cases_taken.h"
#include "tests/engine/primitives/convolution/convolution_cases.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {
namespace {

using threading::Team;

constexpr char kReference[] = "convolution/reference";
constexpr char kGrouped[] = "convolution/avx512_bf16_grouped";

std::vector<float> Rounded(std::vector<float> values) {
  for (float& value : values) value = RoundTo(DataType::kBf16, value);
  return values;
}

struct Types {
  DataType src, dst;
};

std::string TextOf(const Types& types) {
  return absl::StrCat(DataTypeName(types.src), " to ", DataTypeName(types.dst));
}

struct Bf16TensorsCase {
  const char *row, *f32_row;  // for these types, and for f32
  absl::Span<const Types> types;
  int taken;  // of ConvolutionCases() with each of the types, at least
};

void PrintTo(const Bf16TensorsCase& row, std::ostream* out) { *out << row.row; }

class Bf16TensorsTest : public ::testing::TestWithParam<Bf16TensorsCase> {
 protected:
  void SetUp() override {
    row_ = GetParam().row;
    for (const auto& row : ConvolutionImplementations()) {
      if (row.name != row_) continue;
      if (!cpu::Supports(row.isa)) GTEST_SKIP() << "the CPU lacks " << cpu::IsaName(row.isa);
      precision_ = row.traits.precision;
    }
  }

  // The row for a src and dst of these types; null where it is for shapes of another kind.
  std::shared_ptr<const Primitive> Create(const ConvolutionCase& shape, Attributes attributes,
                                          const Types& types) const {
    attributes.precision = precision_;
    ConvolutionDesc desc = DescOf(shape);
    desc.src = *MemoryDesc::CreateAny(desc.src.dims(), types.src);
    desc.dst = *MemoryDesc::CreateAny(desc.dst.dims(), types.dst);
    const bool is_f32 = types.src == DataType::kF32 && types.dst == DataType::kF32;
    auto primitive =
        CreateConvolution(desc, attributes, {.only = is_f32 ? GetParam().f32_row : row_});
    if (!is_f32) CountCase(row_, primitive.ok());
    return primitive.ok() ? *primitive : nullptr;
  }

  // Groups share no line of 32 channels.
  bool MayHaveLines(const ConvolutionCase& shape, const Types& types) const {
    const int64_t ic = shape.ic / shape.groups, oc = shape.oc / shape.groups;
    if (row_ == kGrouped) return true;
    return shape.groups == 1 || row_ == kReference || shape.groups == shape.ic ||
           ((types.src == DataType::kF32 || ic % 32 == 0) &&
            (types.dst == DataType::kF32 || oc % 32 == 0));
  }

  Contents ContentsOf(const ConvolutionCase& shape) const {
    Contents contents = RandomContents(shape);
    contents.src = Rounded(contents.src);
    contents.dst = Rounded(contents.dst);
    return contents;
  }

  static std::vector<float> AsStored(std::vector<float> values, DataType dst) {
    return dst == DataType::kBf16 ? Rounded(std::move(values)) : values;
  }

  // Whether the row takes the shape.
  bool ExpectBitsOfF32(const ConvolutionCase& shape, const Attributes& attributes,
                       const Types& types) {
    SCOPED_TRACE(shape.why);
    const auto f32 = Create(shape, attributes, {DataType::kF32, DataType::kF32});
    const auto narrow = Create(shape, attributes, types);
    EXPECT_EQ(f32 != nullptr && MayHaveLines(shape, types), narrow != nullptr);
    if (f32 == nullptr || narrow == nullptr) return false;
    EXPECT_EQ(narrow->Desc(kArgSrc).data_type(), types.src);
    EXPECT_EQ(narrow->Desc(kArgDst).data_type(), types.dst);
    const Contents contents = ContentsOf(shape);
    bool tail_is_zero = false;
    EXPECT_EQ(Execute(*narrow, contents, Team::Serial(), &tail_is_zero),
              AsStored(Execute(*f32, contents, Team::Serial()), types.dst));
    EXPECT_TRUE(tail_is_zero);
    return true;
  }

  std::string row_;
  Precision precision_ = Precision::kExact;
};

class GeneratedBf16TensorsTest : public Bf16TensorsTest {
 protected:
  // In a batch of three, where the row takes it.
  void ExpectBitsOfPartsAndOfOneImage(ConvolutionCase shape, const Types& types, const Team& team) {
    shape.batch = 3;
    const auto dense = Create(shape, AttributesOf({}), types);
    if (dense == nullptr) return;
    Attributes attributes = AttributesOf({});
    attributes.precision = precision_;
    ASSERT_OK_AND_ASSIGN(const auto parts, CreateConvolution(InLargerTensors(DescOf(shape), *dense),
                                                             attributes, {.only = row_}));
    const Contents contents = ContentsOf(shape);
    const std::vector<float> expected = Execute(*dense, contents, Team::Serial());
    EXPECT_EQ(Execute(*parts, contents, team), expected);
    shape.batch = 1;
    Contents first = contents;
    first.src.resize(contents.src.size() / 3);
    first.dst.resize(contents.dst.size() / 3);
    EXPECT_EQ(Execute(*Create(shape, AttributesOf({}), types), first, team),
              std::vector<float>(expected.begin(), expected.begin() + first.dst.size()));
  }
};

TEST_P(Bf16TensorsTest, HoldTheBitsOfTensorsOfF32) {
  for (const Types& types : GetParam().types) {
    SCOPED_TRACE(TextOf(types));
    int taken = 0;
    for (const ConvolutionCase& shape : ConvolutionCases())
      taken += ExpectBitsOfF32(shape, AttributesOf({}), types) ? 1 : 0;
    EXPECT_GE(taken, GetParam().taken);
  }
}

TEST_P(Bf16TensorsTest, AreWrittenAfterThePostOps) {
  const EltwisePostOp relu{.op = {.function = EltwiseAlgorithm::kRelu}};
  const EltwisePostOp logistic{.op = {.function = EltwiseAlgorithm::kLogistic}};
  const ConvolutionCase shapes[] = {
      Case("lines and a half, and a tail", {2, 40, 6, 17}, 72, {3, 3}, {.left = {1, 1}}),
      Case("lines only", {1, 64, 7, 7}, 128, {1, 1}),
      Case("depthwise", {1, 72, 5, 30}, 72, {3, 3}, {.groups = 72, .left = {1, 1}}),
      Case("colours", {1, 3, 15, 30}, 48, {7, 7}, {.strides = {2, 2}, .left = {3, 3}}),
      Case("grouped", {1, 24, 5, 30}, 72, {3, 3}, {.groups = 24, .left = {1, 1}}),
      Case("groups of lines", {1, 64, 5, 5}, 128, {3, 3}, {.groups = 2, .left = {1, 1}}),
      Case("more input channels than are read at once", {1, 1040, 5, 5}, 48, {3, 3},
           {.left = {1, 1}}),
  };
  for (const ConvolutionCase& shape : shapes) {
    PReluPostOp prelu;
    for (int64_t c = 0; c < shape.oc; ++c)
      prelu.slopes.push_back(static_cast<float>(c % 7 - 2) * 0.25f);
    for (const std::vector<PostOp>& chain : std::vector<std::vector<PostOp>>{
             {relu}, {logistic}, {prelu}, {relu, SumPostOp{.scale = 0.5f}}}) {
      for (const Types& types : GetParam().types) {
        SCOPED_TRACE(TextOf(types));
        ExpectBitsOfF32(shape, AttributesOf(chain), types);
      }
    }
  }
}

TEST_P(GeneratedBf16TensorsTest, MayBePartsOfLargerTensorsAndOfAnyBatch) {
  threading::Arena arena(2);
  for (const Types& types : GetParam().types) {
    SCOPED_TRACE(TextOf(types));
    for (const ConvolutionCase& shape : ConvolutionCases()) {
      SCOPED_TRACE(shape.why);
      ExpectBitsOfPartsAndOfOneImage(shape, types, Team(&arena));
    }
  }
}

constexpr Types kOnlyBf16[] = {{DataType::kBf16, DataType::kBf16}};
constexpr Types kToBf16[] = {{DataType::kF32, DataType::kBf16}};
constexpr Types kFromOrToBf16[] = {{DataType::kBf16, DataType::kBf16},
                                   {DataType::kBf16, DataType::kF32},
                                   {DataType::kF32, DataType::kBf16}};

constexpr char kDirect[] = "convolution/avx512_bf16_direct";
constexpr char kPlanes[] = "convolution/amx_bf16_planes";
constexpr char kFirstLayer[] = "convolution/avx512_bf16_first_layer";
constexpr char kTileFirstLayer[] = "convolution/amx_bf16_first_layer";
constexpr Bf16TensorsCase kRows[] = {
    {kDirect, kDirect, kFromOrToBf16, 10},
    {"convolution/avx512_bf16_depthwise", "convolution/avx512_f32_depthwise", kToBf16, 3},
    {kGrouped, "convolution/avx512_f32_grouped", kToBf16, 10},
    {kFirstLayer, kFirstLayer, kToBf16, 1},
    {kTileFirstLayer, kTileFirstLayer, kToBf16, 1},
    {kReference, kReference, kOnlyBf16, 20},
    {kPlanes, kPlanes, kFromOrToBf16, 10},
};

INSTANTIATE_TEST_SUITE_P(Rows, Bf16TensorsTest, ::testing::ValuesIn(kRows));
INSTANTIATE_TEST_SUITE_P(Rows, GeneratedBf16TensorsTest,
                         ::testing::ValuesIn(absl::MakeConstSpan(kRows).first(5)));

}  // namespace
}  // namespace tilewire::testing
