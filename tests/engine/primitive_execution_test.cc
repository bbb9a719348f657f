// SPDX-License-Identifier: Apache-2.0
#include "engine/facade/primitive_execution.h"

#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/random_tensor.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {
namespace {

const Dims kImage = {2, 5, 3, 4};  // 5 channels: a padded tail of 11 in nChw16c
constexpr int64_t kElements = 2 * 5 * 3 * 4;
constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

MemoryDesc Tagged(FormatTag tag) { return MemoryDesc::Create(kImage, DataType::kF32, tag).value(); }

class PrimitiveExecutionTest : public ::testing::Test {
 protected:
  // dst = 2 src + 1 on nChw16c, through the cache as the engine does it.
  std::shared_ptr<const Primitive> Linear() {
    EltwiseDesc desc;
    desc.op = {.function = EltwiseAlgorithm::kLinear, .alpha = 2, .beta = 1};
    desc.src = desc.dst = Tagged(FormatTag::k_nChw16c);
    return Create(desc, {});
  }

  // dst = src * weights^T, plus what dst held.
  std::shared_ptr<const Primitive> AddingInnerProduct() {
    InnerProductDesc desc;
    desc.src = MemoryDesc::CreateAny({1, 2}, DataType::kF32).value();
    desc.weights = MemoryDesc::CreateAny({3, 2}, DataType::kF32).value();
    desc.dst = MemoryDesc::CreateAny({1, 3}, DataType::kF32).value();
    Attributes attributes;
    EXPECT_THAT(attributes.post_ops.Append(SumPostOp{}), IsOk());
    return Create(desc, attributes);
  }

  std::shared_ptr<const Primitive> Create(const OpDesc& desc, Attributes attributes) {
    attributes.scratchpad_mode = ScratchpadMode::kUser;
    absl::StatusOr<PrimitiveCache::Found> found = cache_.GetOrCreate(desc, attributes, {});
    EXPECT_THAT(found, IsOk());
    return found->primitive;
  }

  absl::StatusOr<PrimitiveTimes> Execute(const Primitive& primitive,
                                         const std::vector<PrimitiveInput>& inputs,
                                         std::vector<PrimitiveOutput>& outputs) {
    return ExecuteWithReorders(primitive, inputs, absl::MakeSpan(outputs),
                               {&cache_, &scratchpads_, threading::Team::Serial()});
  }

  absl::Status Status(const Primitive& primitive, const std::vector<PrimitiveInput>& inputs,
                      std::vector<PrimitiveOutput> outputs) {
    return Execute(primitive, inputs, outputs).status();
  }

  PrimitiveCache cache_{int64_t{1} << 20};
  ScratchpadPool scratchpads_;
};

// `values` in logical order, laid out as `desc` says; bytes that belong to no element hold `rest`.
std::string BytesOf(const MemoryDesc& desc, const std::vector<float>& values, char rest) {
  std::string bytes(desc.SizeBytes(), rest);
  int64_t element = 0;
  for (int64_t n = 0; n < kImage[0]; ++n)
    for (int64_t c = 0; c < kImage[1]; ++c)
      for (int64_t h = 0; h < kImage[2]; ++h)
        for (int64_t w = 0; w < kImage[3]; ++w) {
          std::memcpy(&bytes[desc.Offset({n, c, h, w}) * 4], &values[element++], 4);
        }
  return bytes;
}

std::vector<absl::string_view> Cut(absl::string_view bytes, size_t piece) {
  std::vector<absl::string_view> pieces;
  for (size_t i = 0; i < bytes.size(); i += piece) pieces.push_back(bytes.substr(i, piece));
  return pieces;
}

absl::string_view View(const AlignedBuffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.data()), buffer.size()};
}

std::vector<PrimitiveOutput> Outputs(MemoryDesc desc) {
  std::vector<PrimitiveOutput> outputs(1);
  outputs[0].desc = std::move(desc);
  return outputs;
}

absl::string_view FloatBytes(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

MemoryDesc WithGaps() {
  return MemoryDesc::CreateStrided(kImage, DataType::kF32, {200, 30, 10, 2}).value();
}

// A dimension that repeats is legal to read, not to write.
MemoryDesc Repeating() {
  return MemoryDesc::CreateStrided(kImage, DataType::kF32, {0, 12, 4, 1}).value();
}

TEST_F(PrimitiveExecutionTest, EveryLayoutInAndOutGivesTheSameNumbers) {
  const std::shared_ptr<const Primitive> linear = Linear();
  const std::vector<float> values = RandomFloats(kElements, 1);
  std::vector<float> expected;
  for (float value : values) expected.push_back(2 * value + 1);
  const MemoryDesc layouts[] = {Tagged(FormatTag::k_nchw), Tagged(FormatTag::k_nhwc),
                                Tagged(FormatTag::k_nChw16c), Tagged(FormatTag::k_nChw8c),
                                WithGaps()};
  for (const MemoryDesc& in : layouts) {
    // Bytes that the caller leaves between and after its elements must not matter.
    const std::string bytes = BytesOf(in, values, '\x7f');
    for (const MemoryDesc& out : layouts) {
      SCOPED_TRACE(in.ToString() + " to " + out.ToString());
      for (size_t piece : {size_t{7}, size_t{64}, bytes.size()}) {
        std::vector<PrimitiveOutput> outputs = Outputs(out);
        ASSERT_THAT(Execute(*linear, {{kArgSrc, in, Cut(bytes, piece)}}, outputs), IsOk());
        EXPECT_EQ(View(outputs[0].bytes), BytesOf(out, expected, '\0'));
      }
    }
  }
  EXPECT_EQ(scratchpads_.leased_bytes(), 0);
}

TEST_F(PrimitiveExecutionTest, AnyAndZeroDescriptorsGiveWhatThePrimitiveWrote) {
  const std::shared_ptr<const Primitive> linear = Linear();
  const std::vector<float> values(kElements, 3.0f);
  const MemoryDesc any = MemoryDesc::CreateAny(kImage, DataType::kF32).value();
  for (const MemoryDesc& asked : {any, MemoryDesc()}) {
    std::vector<PrimitiveOutput> outputs = Outputs(asked);
    const PrimitiveInput input = {kArgSrc, Tagged(FormatTag::k_nchw), {FloatBytes(values)}};
    ASSERT_THAT(Execute(*linear, {input}, outputs), IsOk());
    EXPECT_EQ(outputs[0].desc, Tagged(FormatTag::k_nChw16c));
    EXPECT_EQ(View(outputs[0].bytes),
              BytesOf(outputs[0].desc, std::vector<float>(kElements, 7.0f), '\0'));
  }
}

TEST_F(PrimitiveExecutionTest, SumReadsTheDestinationThatIsGiven) {
  const std::shared_ptr<const Primitive> product = AddingInnerProduct();
  const MemoryDesc src_md = MemoryDesc::Create({1, 2}, DataType::kF32, FormatTag::k_nc).value();
  const MemoryDesc dst_md = MemoryDesc::Create({1, 3}, DataType::kF32, FormatTag::k_nc).value();
  const MemoryDesc weights_md = MemoryDesc::Create({3, 2}, DataType::kF32, FormatTag::k_oi).value();
  const std::vector<float> src = {1, 2}, weights = {1, 0, 0, 1, 1, 1}, dst = {10, 20, 30};
  const PrimitiveInput src_input = {kArgSrc, src_md, {FloatBytes(src)}};
  const PrimitiveInput weights_input = {kArgWeights, weights_md, {FloatBytes(weights)}};
  const PrimitiveInput dst_input = {kArgDst, dst_md, {FloatBytes(dst)}};
  std::vector<PrimitiveOutput> outputs = Outputs(dst_md);
  ASSERT_THAT(Execute(*product, {src_input, weights_input, dst_input}, outputs), IsOk());
  EXPECT_EQ(View(outputs[0].bytes), FloatBytes({11, 22, 33}));
  EXPECT_THAT(Status(*product, {src_input, weights_input}, Outputs(dst_md)),
              StatusIs(kInvalid, "dst is missing among the inputs"));
}

TEST_F(PrimitiveExecutionTest, WrongArgumentsAreNamed) {
  const std::shared_ptr<const Primitive> linear = Linear();
  const std::vector<float> values(2 * kElements);
  const MemoryDesc nchw = Tagged(FormatTag::k_nchw);
  const MemoryDesc other_shape =
      MemoryDesc::Create({2, 4, 3, 4}, DataType::kF32, FormatTag::k_nchw).value();
  const MemoryDesc other_type =
      MemoryDesc::Create(kImage, DataType::kS32, FormatTag::k_nchw).value();
  const absl::string_view bytes = FloatBytes(values).substr(0, kElements * 4);
  const PrimitiveInput good = {kArgSrc, nchw, {bytes}};
  const struct {
    const char* why;
    std::vector<PrimitiveInput> inputs;
    MemoryDesc output;
    const char* message;
  } cases[] = {
      {"nothing given", {}, nchw, "src is missing"},
      {"given twice", {good, good}, nchw, "src is given twice"},
      {"unknown", {good, {kArgWeights, nchw, {bytes}}}, nchw, "weights is not an input"},
      {"an output", {good, {kArgDst, nchw, {bytes}}}, nchw, "dst is not an input"},
      {"another shape", {{kArgSrc, other_shape, {bytes}}}, nchw, "src has shape [2,4,3,4]"},
      {"another type", {{kArgSrc, other_type, {bytes}}}, nchw, "src has type s32"},
      {"too few bytes", {{kArgSrc, nchw, {bytes.substr(1)}}}, nchw, "src has 479 bytes, not 480"},
      {"too many bytes", {{kArgSrc, nchw, {bytes, "x"}}}, nchw, "src has 481 bytes, not 480"},
      {"no layout", {{kArgSrc, MemoryDesc(), {}}}, nchw, "src has shape []"},
      {"output of another shape", {good}, other_shape, "dst has shape [2,4,3,4]"},
      {"output of another type", {good}, other_type, "dst has type s32"},
      {"output that overlaps", {good}, Repeating(), "dst has elements that share an address"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.why);
    EXPECT_THAT(Status(*linear, c.inputs, Outputs(c.output)), StatusIs(kInvalid, c.message));
  }
  EXPECT_THAT(Status(*linear, {good}, {}), StatusIs(kInvalid, "dst is missing"));
  EXPECT_EQ(scratchpads_.leased_bytes(), 0);
}

TEST_F(PrimitiveExecutionTest, InputMayRepeatADimension) {
  const std::shared_ptr<const Primitive> linear = Linear();
  const std::vector<float> values = RandomFloats(kElements / 2, 2);
  std::vector<float> expected;
  for (int i = 0; i < kElements; ++i) expected.push_back(2 * values[i % (kElements / 2)] + 1);
  std::vector<PrimitiveOutput> outputs = Outputs(Tagged(FormatTag::k_nchw));
  ASSERT_THAT(Execute(*linear, {{kArgSrc, Repeating(), {FloatBytes(values)}}}, outputs), IsOk());
  EXPECT_EQ(View(outputs[0].bytes), FloatBytes(expected));
}

}  // namespace
}  // namespace tilewire::testing
