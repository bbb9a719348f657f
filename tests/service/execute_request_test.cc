// SPDX-License-Identifier: Apache-2.0
#include "service/wire/execute_request.h"

#include <initializer_list>
#include <string>
#include <variant>

#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"
#include "service/wire/primitive_decoder.h"
#include "tests/service/served_fixture.h"
#include "tests/support/status_matchers.h"

namespace tilewire::service {
namespace {

using tilewire::testing::IsOk;
using tilewire::testing::StatusIs;

constexpr int64_t kEnough = 1 << 20;

grpc::ByteBuffer InSlicesOf(const std::string& bytes, size_t size) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < bytes.size(); at += size) slices.emplace_back(bytes.substr(at, size));
  return grpc::ByteBuffer(slices.data(), slices.size());
}

absl::StatusOr<std::vector<PrimitiveInput>> InputsOf(const ExecuteRequest& request, int64_t bytes) {
  ByteBudget budget(bytes);
  return request.Inputs(&budget);
}

// Two inputs: 24 floats and 5 floats.
v1::ExecuteRequest TwoInputs() {
  v1::ExecuteRequest request;
  request.set_id("primitive");
  for (const auto& [argument, count] : {std::pair{1, 24}, std::pair{2, 5}}) {
    v1::Tensor* tensor = request.add_inputs();
    tensor->set_argument(argument);
    tensor->mutable_desc()->set_type(v1::DATA_TYPE_F32);
    tensor->mutable_desc()->add_dims(count);
    tensor->set_content(Floats(count, argument));
  }
  request.add_outputs()->set_argument(17);
  return request;
}

std::string Joined(const PrimitiveInput& input) {
  std::string all;
  for (absl::string_view piece : input.pieces) all.append(piece.data(), piece.size());
  return all;
}

TEST(ExecuteRequestTest, SlicesOfAnySizeGiveTheSameTensors) {
  const std::string bytes = TwoInputs().SerializeAsString();
  for (size_t size : {1, 2, 3, 7, 64, 4096}) {
    SCOPED_TRACE(size);
    ExecuteRequest request;
    ASSERT_THAT(request.Parse(InSlicesOf(bytes, size)), IsOk());
    EXPECT_EQ(request.message().id(), "primitive");
    EXPECT_EQ(request.message().outputs_size(), 1);
    const auto inputs = InputsOf(request, kEnough);
    ASSERT_THAT(inputs.status(), IsOk());
    ASSERT_EQ(inputs->size(), 2);
    EXPECT_EQ(Joined((*inputs)[0]), Floats(24, 1));
    EXPECT_EQ(Joined((*inputs)[1]), Floats(5, 2));
  }
}

TEST(ExecuteRequestTest, EveryTruncationIsRefusedOrParses) {
  const std::string bytes = TwoInputs().SerializeAsString();
  for (size_t size = 0; size < bytes.size(); ++size) {
    ExecuteRequest request;
    const absl::Status parsed = request.Parse(InSlicesOf(bytes.substr(0, size), 5));
    if (!parsed.ok()) {
      EXPECT_THAT(parsed, StatusIs(absl::StatusCode::kInvalidArgument));
    }
  }
}

TEST(ExecuteRequestTest, OfTwoContentsTheLastCounts) {
  v1::Tensor second;
  second.set_content(Floats(24, 50));
  std::string tensor = TwoInputs().inputs(0).SerializeAsString() + second.SerializeAsString();
  v1::ExecuteRequest with_id;
  with_id.set_id("x");
  std::string bytes = with_id.SerializeAsString() + "\x1a";
  bytes += static_cast<char>((tensor.size() & 0x7F) | 0x80);
  bytes += static_cast<char>(tensor.size() >> 7);
  bytes += tensor;
  ExecuteRequest request;
  ASSERT_THAT(request.Parse(InSlicesOf(bytes, 10)), IsOk());
  const auto inputs = InputsOf(request, kEnough);
  ASSERT_THAT(inputs.status(), IsOk());
  EXPECT_EQ(Joined((*inputs)[0]), Floats(24, 50));
}

TEST(ExecuteRequestTest, ContentsThatDoNotFitAreRefused) {
  v1::ExecuteRequest message = TwoInputs();
  message.mutable_inputs(1)->mutable_content()->pop_back();
  ExecuteRequest short_by_one;
  ASSERT_THAT(short_by_one.Parse(InSlicesOf(message.SerializeAsString(), 64)), IsOk());
  EXPECT_THAT(InputsOf(short_by_one, kEnough).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, "19 bytes"));
  ExecuteRequest whole;
  ASSERT_THAT(whole.Parse(InSlicesOf(TwoInputs().SerializeAsString(), 64)), IsOk());
  EXPECT_THAT(InputsOf(whole, 100).status(), StatusIs(absl::StatusCode::kResourceExhausted, "100"));
}

// Dimensions of one block have the stride of a neighbour, and could stand on either side of it.
TEST(MemoryDescCodecTest, ABlockedLayoutIsWrittenAsItWasRead) {
  for (const char* pattern : {"Bacd6b", "aBcd6b", "cdBa6b", "dBca6b", "Bacd2b3b", "cBad19b"}) {
    for (const Dims& dims : {Dims{1, 19, 8, 8}, Dims{1, 6, 1, 8}, Dims{2, 19, 1, 1}}) {
      v1::MemoryDesc message;
      for (int64_t dim : dims) message.add_dims(dim);
      message.set_type(v1::DATA_TYPE_F32);
      message.set_pattern(pattern);
      const absl::StatusOr<MemoryDesc> desc = DecodeMemoryDesc(message);
      ASSERT_THAT(desc.status(), IsOk()) << pattern;
      const absl::StatusOr<MemoryDesc> again = DecodeMemoryDesc(EncodeMemoryDesc(*desc));
      ASSERT_THAT(again.status(), IsOk()) << pattern;
      EXPECT_EQ(*again, *desc) << EncodeMemoryDesc(*desc).ShortDebugString();
    }
  }
}

// With weights a primitive chooses what it reads; a dst that is not named can be read by anyone.
TEST(PrimitiveDecoderTest, TensorsWithoutALayoutAreLeftToThePrimitive) {
  const auto set = [](std::initializer_list<int64_t> dims, v1::MemoryDesc* tensor) {
    tensor->mutable_dims()->Assign(dims.begin(), dims.end());
    tensor->set_type(v1::DATA_TYPE_F32);
  };
  v1::PrimitiveDesc message;
  v1::InnerProduct* op = message.mutable_inner_product();
  set({2, 8}, op->mutable_src());
  set({4, 8}, op->mutable_weights());
  set({4}, op->mutable_bias());
  set({2, 4}, op->mutable_dst());
  const auto open = DecodeOperation(message);
  ASSERT_THAT(open.status(), IsOk());
  const auto& desc = std::get<InnerProductDesc>(*open);
  EXPECT_TRUE(desc.src.IsAny());
  EXPECT_TRUE(desc.weights.IsAny());
  EXPECT_TRUE(desc.bias.IsAny());
  EXPECT_EQ(desc.dst.Tag(), FormatTag::k_nc) << desc.dst.ToString();

  op->mutable_weights()->set_tag("io");
  const auto named = DecodeOperation(message);
  ASSERT_THAT(named.status(), IsOk());
  EXPECT_EQ(std::get<InnerProductDesc>(*named).weights.stride(0), 1);

  v1::PrimitiveDesc softmax;
  set({2, 8}, softmax.mutable_softmax()->mutable_src());
  set({2, 8}, softmax.mutable_softmax()->mutable_dst());
  const auto plain = DecodeOperation(softmax);
  ASSERT_THAT(plain.status(), IsOk());
  EXPECT_FALSE(std::get<SoftmaxDesc>(*plain).src.IsAny());
}

}  // namespace
}  // namespace tilewire::service
