// SPDX-License-Identifier: Apache-2.0
//
// Refusals of creation, and whether the message names the culprit.
#include <type_traits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/primitives/convolution/convolution_case.h"

namespace tilewire::testing {
namespace {

using ::testing::HasSubstr;

const ConvolutionCase kGood = Case("", {2, 8, 5, 6}, 8, {3, 3}, {.left = {1, 1}});

MemoryDesc Any(const Dims& dims, DataType type = DataType::kF32) {
  return *MemoryDesc::CreateAny(dims, type);
}

// A descriptor that is good but for one field.
template <typename T>
ConvolutionDesc With(T ConvolutionDesc::*field, const std::type_identity_t<T>& value,
                     ConvolutionDesc desc = DescOf(kGood)) {
  desc.*field = value;
  return desc;
}

using Desc = ConvolutionDesc;

struct BadCase {
  const char* why;
  ConvolutionDesc desc;
  absl::StatusCode code;
  const char* message;
};

std::vector<BadCase> BadCases() {
  constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
  constexpr absl::StatusCode kUnimplemented = absl::StatusCode::kUnimplemented;
  return {
      {"no src", With(&Desc::src, MemoryDesc()), kInvalid, "src"},
      {"matrix", With(&Desc::src, Any({2, 8})), kInvalid, "rank 2"},
      {"dst of another rank", With(&Desc::dst, Any({2, 8, 5})), kInvalid, "rank of dst"},
      {"weights of another rank", With(&Desc::weights, Any({8, 8, 3})), kInvalid, "weights"},
      {"strides missing", With(&Desc::strides, {1}), kInvalid, "strides"},
      {"stride 0", With(&Desc::strides, {1, 0}), kInvalid, "stride along width is 0"},
      {"negative dilation", With(&Desc::dilations, {-1, 0}), kInvalid, "dilation along height"},
      {"negative padding", With(&Desc::padding_left, {1, -1}), kInvalid, "padding along width"},
      {"padding that overflows", With(&Desc::padding_right, {INT64_MAX, 1}), kInvalid, "padding"},
      {"other batch", With(&Desc::dst, Any({3, 8, 5, 6})), kInvalid, "N of dst is 3"},
      {"other channels", With(&Desc::src, Any({2, 9, 5, 6})), kInvalid, "C of src is 9"},
      {"other outputs", With(&Desc::dst, Any({2, 9, 5, 6})), kInvalid, "O of dst is 9"},
      {"other height", With(&Desc::dst, Any({2, 8, 4, 6})), kInvalid, "height of dst is 4"},
      {"short bias", With(&Desc::bias, Any({7})), kInvalid, "bias is 7"},
      {"kernel over the padded input", With(&Desc::weights, Any({8, 8, 3, 9})), kInvalid,
       "smaller than the kernel"},
      {"channels of groups", With(&Desc::weights, Any({3, 8, 8, 3, 3})), kInvalid, "is 24"},
      {"dst overlaps itself",
       With(&Desc::dst, *MemoryDesc::CreateStrided({2, 8, 5, 6}, DataType::kF32, {0, 30, 6, 1})),
       kInvalid, "dst"},
      {"bytes", With(&Desc::src, Any({2, 8, 5, 6}, DataType::kU8)), kUnimplemented, "u8"},
      {"Winograd with groups",
       With(&Desc::algorithm, ConvolutionAlgorithm::kWinograd,
            With(&Desc::weights, Any({1, 8, 8, 3, 3}))),
       kUnimplemented, "Winograd was asked for"},
      {"all gradients at once",
       With(&Desc::prop_kind, PropKind::kBackward, With(&Desc::bias, MemoryDesc())), kUnimplemented,
       "does not run backward"},
  };
}

TEST(ConvolutionErrorsTest, CreationNamesWhatDoesNotFit) {
  ASSERT_TRUE(CreateConvolution(DescOf(kGood), {}, {}).ok());
  for (const BadCase& bad : BadCases()) {
    SCOPED_TRACE(bad.why);
    const absl::Status status = CreateConvolution(bad.desc, {}, {}).status();
    EXPECT_EQ(status.code(), bad.code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(bad.message));
  }
}

TEST(ConvolutionErrorsTest, UnknownImplementationIsRefused) {
  const absl::Status status =
      CreateConvolution(DescOf(kGood), {}, {.only = "convolution/gpu"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
}

TEST(ConvolutionErrorsTest, OutputScalesAreRefused) {
  Attributes attributes;
  attributes.output_scales.scales = {2.0f};
  EXPECT_EQ(CreateConvolution(DescOf(kGood), attributes, {}).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST(ConvolutionErrorsTest, MaxPoolingNeedsAWindowAndADestinationOfItsOwn) {
  ASSERT_TRUE(CreateConvolution(DescOf(kGood), AttributesOf({MaxPoolingPostOp{}}), {}).ok());
  const auto expect = [](const ConvolutionDesc& desc, const Attributes& attributes,
                         absl::StatusCode code, const char* message) {
    const absl::Status status = CreateConvolution(desc, attributes, {}).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  };
  constexpr auto kUnimplemented = absl::StatusCode::kUnimplemented;
  expect(DescOf(kGood), AttributesOf({SumPostOp{}, MaxPoolingPostOp{}}), kUnimplemented,
         "sum post-op");
  ConvolutionCase shape = Case("", {1, 1, 3, 4}, 8, {3, 3});
  expect(DescOf(shape), AttributesOf({MaxPoolingPostOp{}}), absl::StatusCode::kInvalidArgument,
         "[1,8,1,2] has no window");
  shape.in = {4};
  shape.kernel = {3};
  expect(DescOf(shape), AttributesOf({MaxPoolingPostOp{}}), kUnimplemented,
         "needs 2 spatial dimensions, dst has 1");
  ConvolutionDesc desc = DescOf(kGood);
  desc.dst = *MemoryDesc::CreateStrided(desc.dst.dims(), DataType::kF32, {480, 60, 12, 2});
  expect(desc, AttributesOf({MaxPoolingPostOp{}}), kUnimplemented, "`any` or dense");
}

TEST(ConvolutionErrorsTest, RowsThatCannotPoolSaySo) {
  for (const Implementation<ConvolutionDesc>& row : ConvolutionImplementations()) {
    if (row.traits.takes_max_pooling || !cpu::Supports(row.isa)) continue;
    if (!row.traits.propagations.Has(PropKind::kForwardInference)) continue;
    Attributes attributes = AttributesOf({MaxPoolingPostOp{}});
    attributes.precision = row.traits.precision;
    const absl::Status status =
        CreateConvolution(DescOf(kGood), attributes, {.only = row.name}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("takes no max pooling as a post-op"));
  }
}

// The reference of any type and layout: the largest of its own results.
TEST(ConvolutionReferenceTest, MaxPoolingIsTheLargestOfEachWindow) {
  for (const DataType type : {DataType::kF32, DataType::kU8}) {
    const bool is_float = type == DataType::kF32;
    ConvolutionDesc desc = DescOf(Case("", {1, 1, 5, 4}, 2, {1, 1}, {.bias = false}));
    desc.src = *MemoryDesc::CreatePattern({1, 1, 5, 4}, type, "abcd");
    desc.weights =
        *MemoryDesc::CreatePattern({2, 1, 1, 1}, is_float ? type : DataType::kS8, "abcd");
    desc.dst = *MemoryDesc::CreatePattern({1, 2, 5, 4}, DataType::kF32, "acdb");
    const auto primitive =
        CreateConvolution(desc, AttributesOf({MaxPoolingPostOp{}}), {.reference_only = true});
    ASSERT_TRUE(primitive.ok()) << primitive.status();
    EXPECT_EQ((*primitive)->Desc(kArgDst).ToString(), "f32:1x2x2x2:nhwc");
    std::vector<float> src(20);
    std::vector<uint8_t> bytes(20);
    for (size_t i = 0; i < 20; ++i) src[i] = bytes[i] = static_cast<uint8_t>(i * 7 % 20);
    const float weights[] = {1, -1};
    const int8_t byte_weights[] = {1, -1};
    std::vector<float> dst(8);
    ExecuteArgs args;
    args.Set(kArgSrc, is_float ? static_cast<const void*>(src.data()) : bytes.data());
    args.Set(kArgWeights, is_float ? static_cast<const void*>(weights) : byte_weights);
    ASSERT_TRUE(
        (*primitive)->Execute(args.Set(kArgDst, dst.data()), threading::Team::Serial()).ok());
    // Rows of src: 0 7 14 1, 8 15 2 9, 16 3 10 17, 4 11 18 5, and a fifth that no window reads.
    EXPECT_EQ(dst, (std::vector<float>{15, 0, 14, -1, 16, -3, 18, -5}));
  }
}

std::string KeyOf(const ConvolutionDesc& desc) {
  std::string key;
  AppendKey(desc, &key);
  return key;
}

TEST(ConvolutionKeyTest, EveryFieldCounts) {
  const std::string key = KeyOf(DescOf(kGood));
  EXPECT_EQ(key, KeyOf(DescOf(kGood)));
  for (Dims ConvolutionDesc::*field :
       {&ConvolutionDesc::strides, &ConvolutionDesc::dilations, &ConvolutionDesc::padding_left,
        &ConvolutionDesc::padding_right}) {
    ConvolutionDesc other = DescOf(kGood);
    ++(other.*field)[1];
    EXPECT_NE(key, KeyOf(other));
  }
  ConvolutionDesc other = DescOf(kGood);
  other.algorithm = ConvolutionAlgorithm::kDirect;
  EXPECT_NE(key, KeyOf(other));
  other = DescOf(kGood);
  other.bias = MemoryDesc();
  EXPECT_NE(key, KeyOf(other));
}

}  // namespace
}  // namespace tilewire::testing
