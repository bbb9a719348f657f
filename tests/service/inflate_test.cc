// SPDX-License-Identifier: Apache-2.0
//
// Streams of gzip and deflate, whole, cut, broken and too large; and compressed calls of a real
// client.
#include "service/wire/inflate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "protos/health.grpc.pb.h"
#include "tests/service/served_fixture.h"
#include "tests/support/status_matchers.h"

namespace tilewire::service {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

constexpr grpc_compression_algorithm kAlgorithms[] = {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE};

std::string Compressed(const std::string& text, grpc_compression_algorithm algorithm) {
  z_stream stream = {};
  const int bits = MAX_WBITS + (algorithm == GRPC_COMPRESS_GZIP ? 16 : 0);
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = text.size();
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = out.size();
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// The text cut into slices of `size` bytes.
std::vector<grpc::Slice> Slices(const std::string& text, size_t size) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < text.size(); at += size) slices.emplace_back(text.substr(at, size));
  return slices;
}

std::string Bytes(const grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  EXPECT_TRUE(buffer.DumpToSingleSlice(&slice).ok());
  return std::string(reinterpret_cast<const char*>(slice.begin()), slice.size());
}

class Charges {
 public:
  absl::Status operator()(int64_t bytes) {
    charged += bytes;
    return charged <= most ? absl::OkStatus() : absl::UnavailableError("no room");
  }
  int64_t charged = 0, most = int64_t{1} << 40;
};

TEST(InflateTest, GivesBackWhatWasCompressedHoweverItIsCut) {
  const std::string pieces(3 * kInflatedPiece, 'a');
  for (const std::string& text : {std::string(), std::string("x"), pieces, pieces + "b"}) {
    for (const grpc_compression_algorithm algorithm : kAlgorithms) {
      const std::string packed = Compressed(text, algorithm);
      for (const size_t cut : {size_t{1}, size_t{7}, packed.size()}) {
        Charges charges;
        grpc::ByteBuffer inflated;
        ASSERT_THAT(
            InflateSlices(algorithm, Slices(packed, cut), 1 << 20, std::ref(charges), &inflated),
            IsOk());
        EXPECT_TRUE(Bytes(inflated) == text) << text.size() << " cut by " << cut;
        EXPECT_GE(charges.charged, static_cast<int64_t>(text.size()));
        EXPECT_LE(charges.charged, static_cast<int64_t>(text.size()) + 2 * kInflatedPiece);
      }
    }
  }
}

TEST(InflateTest, StopsAtTheBoundOfAMessageAndOfWhatIsCharged) {
  const std::string bomb = Compressed(std::string(64 << 20, '\0'), GRPC_COMPRESS_GZIP);
  grpc::ByteBuffer inflated;
  Charges free, tight;
  tight.most = 10 * kInflatedPiece;
  EXPECT_THAT(
      InflateSlices(GRPC_COMPRESS_GZIP, Slices(bomb, 1000), 1 << 20, std::ref(free), &inflated),
      StatusIs(absl::StatusCode::kResourceExhausted, "1048576 bytes"));
  EXPECT_LE(free.charged, (1 << 20) + 2 * kInflatedPiece);
  EXPECT_THAT(
      InflateSlices(GRPC_COMPRESS_GZIP, Slices(bomb, 1000), 1 << 30, std::ref(tight), &inflated),
      StatusIs(absl::StatusCode::kUnavailable, "no room"));
  EXPECT_FALSE(inflated.Valid());
}

TEST(InflateTest, RefusesWhatIsCutOffBrokenOrGoesOn) {
  const std::string text = "a text of some words, and the same words of some text";
  for (const grpc_compression_algorithm algorithm : kAlgorithms) {
    const std::string whole = Compressed(text, algorithm);
    const auto refused = [&](const std::string& bytes) {
      Charges charges;
      grpc::ByteBuffer inflated;
      return InflateSlices(algorithm, Slices(bytes, 16), 1 << 20, std::ref(charges), &inflated);
    };
    for (size_t size = 0; size < whole.size(); ++size) {
      EXPECT_THAT(refused(whole.substr(0, size)),
                  StatusIs(absl::StatusCode::kInvalidArgument, "decompressed"));
    }
    std::string broken = whole;
    broken[broken.size() / 2] ^= 0x55;
    for (const std::string& bytes : {text, broken, whole + "x", whole + whole}) {
      EXPECT_THAT(refused(bytes), StatusIs(absl::StatusCode::kInvalidArgument, "decompressed"));
    }
  }
}

class CompressedCallsTest : public ServedFixture {
 protected:
  void SetUp() override {
    ServedFixture::SetUp();
    options_.transport.max_message_bytes = 8 << 20;
    Start();
    ConnectOverTcp();
  }
};

TEST_F(CompressedCallsTest, AreAnsweredAsPlainOnes) {
  inference::ModelInferResponse plain;
  ASSERT_TRUE(Infer(GoodRequest(), &plain).ok());
  for (const grpc_compression_algorithm algorithm : kAlgorithms) {
    inference::ModelInferRequest request = GoodRequest();
    (*request.mutable_parameters())["a_name_that_is_ignored"].set_string_param(
        std::string(10'000, 'x'));  // so that compression pays
    grpc::ClientContext context, named;
    context.set_compression_algorithm(algorithm);
    named.set_compression_algorithm(algorithm);
    inference::ModelInferResponse response;
    const grpc::Status status = stub_->ModelInfer(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.SerializeAsString(), plain.SerializeAsString());
    inference::ModelReadyRequest about;
    about.set_name("echo");
    about.set_version(std::string(1000, '0') + "1");
    inference::ModelReadyResponse ready;
    EXPECT_NE(stub_->ModelReady(&named, about, &ready).error_code(),
              grpc::StatusCode::UNIMPLEMENTED);
  }
}

TEST_F(CompressedCallsTest, HealthIsCheckedCompressedToo) {
  const auto health = grpc::health::v1::Health::NewStub(channel_);
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(std::string(5000, 'x'));
  grpc::health::v1::HealthCheckResponse response;
  grpc::ClientContext context;
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  EXPECT_EQ(health->Check(&context, request, &response).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(CompressedCallsTest, BombsAreRefusedAtTheBoundOfTheirMethod) {
  inference::ModelInferRequest bomb = GoodRequest();
  bomb.set_raw_input_contents(0, std::string(64 << 20, '\0'));
  inference::ModelReadyRequest name;
  name.set_name(std::string(1 << 20, 'x'));
  for (const grpc_compression_algorithm algorithm : kAlgorithms) {
    grpc::ClientContext context, named;
    context.set_compression_algorithm(algorithm);
    named.set_compression_algorithm(algorithm);
    inference::ModelInferResponse response;
    const grpc::Status large = stub_->ModelInfer(&context, bomb, &response);
    EXPECT_EQ(large.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_THAT(large.error_message(), HasSubstr("8388608"));
    inference::ModelReadyResponse ready;
    const grpc::Status long_name = stub_->ModelReady(&named, name, &ready);
    EXPECT_EQ(long_name.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_THAT(long_name.error_message(), HasSubstr("65536"));
  }
  inference::ModelInferResponse response;
  EXPECT_TRUE(Infer(GoodRequest(), &response).ok());
  ExpectNothingIsHeld();
}

}  // namespace
}  // namespace tilewire::service
