// SPDX-License-Identifier: Apache-2.0
#include "service/wire/message_limits.h"

#include <string>

#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"
#include "protos/open_inference.pb.h"
#include "protos/tilewire.pb.h"
#include "tests/support/status_matchers.h"

namespace tilewire::service {
namespace {

using tilewire::testing::IsOk;
using tilewire::testing::StatusIs;

// In slices of 1000 bytes, so that fields cross their borders.
grpc::ByteBuffer Buffer(const std::string& bytes) {
  std::vector<grpc::Slice> slices;
  for (size_t i = 0; i < bytes.size(); i += 1000) slices.emplace_back(bytes.substr(i, 1000));
  return grpc::ByteBuffer(slices.data(), slices.size());
}

std::string Repeat(const std::string& piece, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += piece;
  return all;
}

TEST(MessageLimitsTest, ParsesWhatIsWithin) {
  v1::ExecuteRequest request, parsed;
  request.set_id("a primitive");
  v1::Tensor* tensor = request.add_inputs();
  tensor->mutable_desc()->add_dims(5000);
  tensor->set_content(std::string(5000, 'x'));
  ASSERT_THAT(ParseLimited(Buffer(request.SerializeAsString()), &parsed), IsOk());
  EXPECT_EQ(parsed.SerializeAsString(), request.SerializeAsString());
}

TEST(MessageLimitsTest, EmptyMessagesByTheMillionAreRefusedBeforeTheyAreParsed) {
  v1::ExecuteRequest parsed;
  EXPECT_THAT(ParseLimited(Buffer(Repeat(std::string("\x1a\x00", 2), 1000000)), &parsed),
              StatusIs(absl::StatusCode::kInvalidArgument, "entries"));
  EXPECT_EQ(parsed.inputs_size(), 0);
}

TEST(MessageLimitsTest, NestedEntriesAndUnknownFieldsCount) {
  inference::ModelInferRequest request, parsed;
  for (int i = 0; i < 200; ++i) {
    auto* contents = request.add_inputs()->mutable_contents();
    for (int j = 0; j < 1000; ++j) contents->add_bytes_contents("");
  }
  EXPECT_THAT(ParseLimited(Buffer(request.SerializeAsString()), &parsed),
              StatusIs(absl::StatusCode::kInvalidArgument, "entries"));
  EXPECT_THAT(ParseLimited(Buffer(Repeat("\x78\x01", 200000)), &parsed),
              StatusIs(absl::StatusCode::kInvalidArgument, "entries"));
}

TEST(MessageLimitsTest, PackedIntegersCountByTheirBytesAndFloatsDoNot) {
  inference::ModelInferRequest request, parsed;
  auto* floats = request.add_inputs()->mutable_contents()->mutable_fp32_contents();
  floats->Resize(4000000, 1.0f);
  EXPECT_THAT(ParseLimited(Buffer(request.SerializeAsString()), &parsed), IsOk());
  request.Clear();
  request.add_inputs()->mutable_shape()->Resize(10000000, 1);
  EXPECT_THAT(ParseLimited(Buffer(request.SerializeAsString()), &parsed),
              StatusIs(absl::StatusCode::kInvalidArgument, "entries"));
}

TEST(MessageLimitsTest, TensorsThatNoMessageHoldsDoNotFit) {
  const TensorSpec image = {"x", DataType::kF32, {-1, 3, 4, 4}};
  EXPECT_TRUE(FitMessage({image}, 192));
  EXPECT_FALSE(FitMessage({image}, 191));
  EXPECT_FALSE(FitMessage({image, image}, 383));
  EXPECT_FALSE(FitMessage({{"x", DataType::kF32, {1, int64_t{1} << 40, int64_t{1} << 40}}, image},
                          int64_t{1} << 30));
}

TEST(MessageLimitsTest, ARefusalReadsAsASentence) {
  v1::ExecuteRequest parsed;
  EXPECT_THAT(
      ParseLimited(Buffer("\x07"), &parsed),
      StatusIs(absl::StatusCode::kInvalidArgument, "the request is not a valid ExecuteRequest"));
}

TEST(MessageLimitsTest, EveryTruncationIsRefusedOrParses) {
  v1::CreateRequest request;
  request.mutable_primitive()->mutable_reorder()->mutable_src()->set_tag("nchw");
  request.mutable_primitive()->mutable_attributes()->mutable_output_scales()->add_scales(2);
  const std::string bytes = request.SerializeAsString();
  for (size_t size = 0; size < bytes.size(); ++size) {
    v1::CreateRequest parsed;
    const absl::Status status = ParseLimited(Buffer(bytes.substr(0, size)), &parsed);
    EXPECT_EQ(status.ok(), v1::CreateRequest().ParseFromString(bytes.substr(0, size))) << size;
    if (!status.ok()) {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, "CreateRequest"));
    }
  }
}

}  // namespace
}  // namespace tilewire::service
