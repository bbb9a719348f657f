// SPDX-License-Identifier: Apache-2.0
#include "service/wire/request_decoder.h"

#include <cstring>
#include <string>

#include "tests/service/served_fixture.h"
#include "tests/support/status_matchers.h"

namespace tilewire::service {
namespace {

using tilewire::testing::IsOk;
using tilewire::testing::StatusIs;

// The message cut into slices of `size` bytes.
grpc::ByteBuffer Cut(const std::string& bytes, size_t size) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < bytes.size(); at += size) slices.emplace_back(bytes.substr(at, size));
  return grpc::ByteBuffer(slices.data(), slices.size());
}

TEST(RequestDecoderTest, SlicesOfAnySizeGiveTheSameTensors) {
  const std::string bytes = GoodRequest().SerializeAsString();
  const std::function<void()> nothing;
  const tilewire::testing::FakeModel model(&nothing);
  for (size_t size : {1, 2, 3, 7, 64, 4096}) {
    SCOPED_TRACE(size);
    InferRequest request;
    ASSERT_THAT(request.Parse(Cut(bytes, size)), IsOk());
    ASSERT_THAT(request.Bind(model.signature()), IsOk());
    std::string image;
    for (absl::string_view piece : request.inputs()[0].pieces) {
      image.append(piece.data(), piece.size());
    }
    EXPECT_EQ(image, Floats(24));
  }
}

TEST(RequestDecoderTest, ALevelThatThereIsNotIsTheDefault) {
  const std::function<void()> nothing;
  const tilewire::testing::FakeModel model(&nothing);
  const struct {
    uint64_t sent;
    int taken;
  } cases[] = {{0, -2},           {1, -1},
               {3, -3},           {2147483647, -2147483647},
               {2147483648, -2},  {uint64_t{1} << 40, -2},
               {~uint64_t{0}, -2}};
  for (const auto& [sent, taken] : cases) {
    for (const bool is_signed : {false, true}) {
      if (is_signed && sent >> 63 != 0) continue;
      inference::ModelInferRequest message = GoodRequest();
      auto& priority = (*message.mutable_parameters())["priority"];
      is_signed ? priority.set_int64_param(static_cast<int64_t>(sent))
                : priority.set_uint64_param(sent);
      InferRequest request;
      ASSERT_THAT(request.Parse(Cut(message.SerializeAsString(), 64)), IsOk());
      ASSERT_THAT(request.Bind(model.signature()), IsOk()) << sent;
      EXPECT_EQ(request.priority(), taken) << sent;
    }
  }
}

TEST(RequestDecoderTest, OneRequestLeavesNothingToTheNext) {
  const std::function<void()> nothing;
  const tilewire::testing::FakeModel model(&nothing);
  inference::ModelInferRequest first = GoodRequest();
  (*first.mutable_parameters())["priority"].set_int64_param(1);
  (*first.mutable_parameters())["timeout"].set_int64_param(1000);
  (*first.mutable_parameters())["timing"].set_bool_param(true);
  first.add_outputs()->set_name(model.signature().outputs[0].name);
  InferRequest request;
  ASSERT_THAT(request.Parse(Cut(first.SerializeAsString(), 7)), IsOk());
  ASSERT_THAT(request.Bind(model.signature()), IsOk());
  EXPECT_EQ(request.outputs().size(), 1);
  EXPECT_TRUE(request.timing());
  ASSERT_THAT(request.Parse(Cut(GoodRequest().SerializeAsString(), 64)), IsOk());
  ASSERT_THAT(request.Bind(model.signature()), IsOk());
  EXPECT_EQ(request.outputs().size(), model.signature().outputs.size());
  EXPECT_EQ(request.priority(), -2);
  EXPECT_EQ(request.timeout(), absl::InfiniteDuration());
  EXPECT_FALSE(request.timing());
  std::string image;
  for (absl::string_view piece : request.inputs()[0].pieces) {
    image.append(piece.data(), piece.size());
  }
  EXPECT_EQ(image, Floats(24));
}

TEST(RequestDecoderTest, AnInputOfAnyRankTakesEveryShape) {
  ModelSignature signature;
  signature.inputs = {{"image", DataType::kF32, {}, /*any_rank=*/true},
                      {"row", DataType::kF32, {-1, 5}}};
  signature.outputs = {{"out", DataType::kF32, {}, /*any_rank=*/true}};
  inference::ModelInferRequest message = GoodRequest();
  message.add_outputs()->set_name("out");
  (*message.mutable_outputs(0)->mutable_parameters())["layout"].set_string_param("nhwc");
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{24}, std::vector<int64_t>{2, 3, 4}, std::vector<int64_t>(3, 1)}) {
    message.mutable_inputs(0)->mutable_shape()->Assign(shape.begin(), shape.end());
    const bool fits = shape.size() != 3 || shape[0] == 2;
    InferRequest request;
    ASSERT_THAT(request.Parse(Cut(message.SerializeAsString(), 4096)), IsOk());
    const absl::Status bound = request.Bind(signature);
    ASSERT_EQ(bound.ok(), fits) << bound;
    if (fits) {
      EXPECT_EQ(request.inputs()[0].dims, Dims(shape.begin(), shape.end()));
    }
  }
  message.mutable_inputs(0)->mutable_shape()->Resize(kMaxRank + 1, 1);
  InferRequest request;
  ASSERT_THAT(request.Parse(Cut(message.SerializeAsString(), 4096)), IsOk());
  EXPECT_THAT(request.Bind(signature),
              StatusIs(absl::StatusCode::kInvalidArgument, "does not match any shape"));
}

// The count of memory is asked before typed contents are copied; raw ones stay where they are.
TEST(RequestDecoderTest, NoLargeCopyIsMadeWithoutAsking) {
  constexpr int64_t kBatch = 1000;
  inference::ModelInferRequest raw = GoodRequest(), typed = GoodRequest();
  for (inference::ModelInferRequest* request : {&raw, &typed}) {
    request->mutable_inputs(0)->set_shape(0, kBatch);
    request->mutable_inputs(1)->set_shape(0, kBatch);
    request->set_raw_input_contents(0, Floats(24 * kBatch));
    request->set_raw_input_contents(1, Floats(5 * kBatch));
  }
  for (int input : {0, 1}) {
    const std::string& values = typed.raw_input_contents(input);
    auto* numbers = typed.mutable_inputs(input)->mutable_contents()->mutable_fp32_contents();
    numbers->Resize(static_cast<int>(values.size() / sizeof(float)), 0);
    std::memcpy(numbers->mutable_data(), values.data(), values.size());
  }
  typed.clear_raw_input_contents();
  const std::function<void()> nothing;
  const tilewire::testing::FakeModel model(&nothing);
  int64_t asked = 0;
  const auto count = [&asked](int64_t bytes) {
    asked += bytes;
    return absl::OkStatus();
  };
  InferRequest request;
  ASSERT_THAT(request.Parse(Cut(raw.SerializeAsString(), 4096), count), IsOk());
  EXPECT_EQ(asked, 0);
  ASSERT_THAT(request.Parse(Cut(typed.SerializeAsString(), 4096), count), IsOk());
  EXPECT_GE(asked, 29 * kBatch * sizeof(float));
  ASSERT_THAT(request.Bind(model.signature()), IsOk());
  EXPECT_LT(request.BytesBeyondMessage(), 16'384) << "its copy has gone";
  const auto refuse = [](int64_t) { return absl::UnavailableError("not now"); };
  EXPECT_THAT(request.Parse(Cut(typed.SerializeAsString(), 4096), refuse),
              StatusIs(absl::StatusCode::kUnavailable, "not now"));
}

TEST(RequestDecoderTest, EveryTruncationIsRefusedOrParses) {
  const std::string bytes = GoodRequest().SerializeAsString();
  for (size_t size = 0; size < bytes.size(); ++size) {
    InferRequest request;
    const absl::Status parsed = request.Parse(Cut(bytes.substr(0, size), 5));
    if (!parsed.ok()) {
      EXPECT_THAT(parsed, StatusIs(absl::StatusCode::kInvalidArgument));
    }
  }
}

TEST(RequestDecoderTest, CountsAreBounded) {
  std::string outputs;
  for (int i = 0; i < 1000000; ++i) outputs += std::string("\x32\x00", 2);  // an empty output
  InferRequest request;
  EXPECT_THAT(request.Parse(Cut(outputs, 65536)),
              StatusIs(absl::StatusCode::kInvalidArgument, "1024"));
}

TEST(RequestDecoderTest, SequencesAreRefusedNotIgnored) {
  inference::ModelInferRequest message = GoodRequest();
  (*message.mutable_parameters())["sequence_id"].set_uint64_param(7);
  const std::function<void()> nothing;
  const tilewire::testing::FakeModel model(&nothing);
  InferRequest request;
  ASSERT_THAT(request.Parse(Cut(message.SerializeAsString(), 1000)), IsOk());
  EXPECT_THAT(request.Bind(model.signature()),
              StatusIs(absl::StatusCode::kInvalidArgument, "'sequence_id'"));
}

}  // namespace
}  // namespace tilewire::service
