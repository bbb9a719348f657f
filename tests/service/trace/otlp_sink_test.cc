// SPDX-License-Identifier: Apache-2.0
#include "service/trace/otlp_sink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "engine/threading/mutex.h"
#include "service/observe/steady_time.h"
#include "tests/service/trace/traced_requests.h"

namespace tilewire::service {
namespace {

using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::SizeIs;

// A collector that keeps what it takes, and refuses first if it is told to.
class Collector final : public otlp::TraceService::Service {
 public:
  explicit Collector(int refusals = 0, grpc::StatusCode code = grpc::StatusCode::UNAVAILABLE)
      : refusals_(refusals), code_(code) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }

  grpc::Status Export(grpc::ServerContext*, const otlp::ExportTraceServiceRequest* request,
                      otlp::ExportTraceServiceResponse* response) override {
    threading::MutexLock lock(&mutex_);
    ++calls_;
    if (refusals_-- > 0) return {code_, "not now"};
    taken_.push_back(*request);
    if (rejects) response->mutable_partial_success()->set_rejected_spans(1);
    return grpc::Status::OK;
  }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }
  int calls() {
    threading::MutexLock lock(&mutex_);
    return calls_;
  }
  std::vector<otlp::ExportTraceServiceRequest> taken() {
    threading::MutexLock lock(&mutex_);
    return taken_;
  }

  bool rejects = false;

 private:
  int port_ = 0;
  threading::Mutex mutex_;
  int refusals_ ABSL_GUARDED_BY(mutex_);
  const grpc::StatusCode code_;
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<otlp::ExportTraceServiceRequest> taken_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::Server> server_;
};

// Returns when all is away, as the thread of traces goes on with it.
void Finish(OtlpSink* sink) {
  while (!sink->Advance(absl::Milliseconds(100))) absl::SleepFor(absl::Milliseconds(1));
}

TEST(OtlpSinkTest, TakesHostAndPortAlone) {
  for (const char* good : {"localhost:4317", "127.0.0.1:1", "[::1]:65535", "otel.monitoring:4317"})
    EXPECT_TRUE(CheckOtlpEndpoint(good).ok()) << good;
  for (const char* bad : {"", "localhost", "localhost:", ":4317", "localhost:0", "localhost:65536",
                          "localhost:http", "http://localhost:4317", "::1:4317", "[]:4317",
                          "unix:/tmp/x:1", "a b:4317", "localhost:4317/v1/traces"}) {
    EXPECT_FALSE(CheckOtlpEndpoint(bad).ok()) << bad;
  }
}

TEST(OtlpSinkTest, ARequestIsASpanAndItsStagesAreItsParts) {
  const Trace trace = testing::TraceOf(testing::AsPart(testing::RequestAt(0, testing::Hostile())),
                                       testing::Hostile());
  const auto request = ExportRequestOf({trace}, "pod-7f");
  otlp::ExportTraceServiceRequest read;
  ASSERT_TRUE(read.ParseFromString(request.SerializeAsString())) << "hostile text breaks it";
  ASSERT_EQ(read.resource_spans_size(), 1);
  EXPECT_EQ(read.resource_spans(0).resource().attributes(0).value().string_value(),
            "tilewire-server");
  const auto& spans = read.resource_spans(0).scope_spans(0).spans();
  ASSERT_THAT(spans, SizeIs(7));
  std::string trace_id, parent_id;
  for (char c = 1; c <= 16; ++c) trace_id.push_back(c);
  for (char c = 17; c <= 24; ++c) parent_id.push_back(c);
  EXPECT_EQ(spans[0].parent_span_id(), parent_id);
  EXPECT_EQ(spans[0].kind(), otlp::Span::SPAN_KIND_SERVER);
  for (const otlp::Span& span : spans) {
    EXPECT_EQ(span.trace_id(), trace_id);
    EXPECT_EQ(span.span_id().size(), 8u);
    EXPECT_LE(span.start_time_unix_nano(), span.end_time_unix_nano());
    EXPECT_EQ(span.parent_span_id(), &span == &spans[0] ? parent_id : spans[0].span_id());
  }
  EXPECT_EQ(spans[0].name(), "inference.GRPCInferenceService/ModelInfer");
  EXPECT_EQ(spans[4].name(), "run");
  EXPECT_EQ(spans[4].end_time_unix_nano() - spans[4].start_time_unix_nano(), 40'000u);
}

// The span of a whole request.
otlp::Span SpanOf(const TracedRequest& request) {
  return ExportRequestOf({testing::TraceOf(request)}, "").resource_spans(0).scope_spans(0).spans(0);
}

TEST(OtlpSinkTest, ARequestIsNamedByItsMethod) {
  const std::string service = "inference.GRPCInferenceService";
  for (const auto& [flags, method] :
       {std::pair(0, "ModelInfer"), {FlightRecord::kInStream, "ModelStreamInfer"}}) {
    TracedRequest request = testing::RequestAt(0);
    request.record.flags = FlightRecord::kIsInference | flags;
    const otlp::Span span = SpanOf(request);
    EXPECT_EQ(span.name(), absl::StrCat(service, "/", method));
    std::map<std::string, std::string> texts;
    for (const auto& one : span.attributes()) texts[one.key()] = one.value().string_value();
    EXPECT_EQ(texts["rpc.system"], "grpc");
    EXPECT_EQ(texts["rpc.service"], service);
    EXPECT_EQ(texts["rpc.method"], method);
  }
}

TEST(OtlpSinkTest, OnlyFailuresOfTheServerAreErrors) {
  const std::set<absl::StatusCode> of_server = {
      absl::StatusCode::kUnknown,  absl::StatusCode::kDeadlineExceeded,
      absl::StatusCode::kInternal, absl::StatusCode::kUnimplemented,
      absl::StatusCode::kDataLoss, absl::StatusCode::kUnavailable};
  for (int code = 0; code <= 16; ++code) {
    TracedRequest request = testing::RequestAt(0);
    request.record.code = static_cast<uint8_t>(code);
    const otlp::Span span = SpanOf(request);
    const bool is_error = span.status().code() == otlp::SpanStatus::STATUS_CODE_ERROR;
    EXPECT_EQ(is_error, of_server.count(static_cast<absl::StatusCode>(code)) == 1) << code;
    EXPECT_EQ(span.status().message().empty(), !is_error) << code;
  }
}

TEST(OtlpSinkTest, TheLongestStepsAreChildrenOfTheRun) {
  const Trace trace = testing::TraceOf(testing::WithSteps(testing::RequestAt(0)));
  const auto request = ExportRequestOf({trace}, "pod-7f");
  const auto& spans = request.resource_spans(0).scope_spans(0).spans();
  ASSERT_THAT(spans, SizeIs(12));
  EXPECT_EQ(spans[0].parent_span_id(), "") << "of no client's";
  for (int i = 7; i < 12; ++i) EXPECT_EQ(spans[i].parent_span_id(), spans[4].span_id());
}

TEST(OtlpSinkTest, SendsInBatches) {
  Collector collector;
  OtlpSink sink(collector.address(), "");
  sink.Write(testing::SomeTraces(600));
  Finish(&sink);
  std::vector<int> spans;
  for (const auto& taken : collector.taken())
    spans.push_back(taken.resource_spans(0).scope_spans(0).spans_size());
  EXPECT_THAT(spans, ElementsAre(256 * 7, 256 * 7, 88 * 7));
  EXPECT_EQ(sink.dropped(), 0);
}

TEST(OtlpSinkTest, TriesAgainWithinABound) {
  const struct {
    int refusals;
    grpc::StatusCode code;
    int calls, taken;
  } cases[] = {
      {2, grpc::StatusCode::UNAVAILABLE, 3, 1},
      {3, grpc::StatusCode::UNAVAILABLE, 3, 0},
      {1, grpc::StatusCode::RESOURCE_EXHAUSTED, 2, 1},
      {1, grpc::StatusCode::INVALID_ARGUMENT, 1, 0},
      {1, grpc::StatusCode::UNIMPLEMENTED, 1, 0},
  };
  for (const auto& [refusals, code, calls, taken] : cases) {
    Collector collector(refusals, code);
    OtlpSink sink(collector.address(), "");
    sink.Write(testing::SomeTraces(2));
    Finish(&sink);
    EXPECT_EQ(collector.calls(), calls) << code;
    EXPECT_THAT(collector.taken(), SizeIs(taken)) << code;
    EXPECT_EQ(sink.dropped(), taken == 1 ? 0 : 2) << code;
  }
}

TEST(OtlpSinkTest, CountsWhatTheCollectorRejects) {
  Collector collector;
  collector.rejects = true;
  OtlpSink sink(collector.address(), "");
  sink.Write(testing::SomeTraces(2));
  Finish(&sink);
  EXPECT_EQ(sink.dropped(), 1);
}

// No program listens on port 1.
TEST(OtlpSinkTest, ACollectorThatIsAwayHoldsNothingUp) {
  OtlpSink sink("127.0.0.1:1", "");
  const absl::Time begin = SteadyNow();
  for (int i = 0; i < 3; ++i) {
    sink.Write(testing::SomeTraces(2000));
    sink.Advance(absl::Milliseconds(10));
  }
  EXPECT_LT(SteadyNow() - begin, absl::Minutes(1));
  EXPECT_THAT(sink.dropped(), Ge(6000 - 4096 - 256)) << "more than may wait";
}

// Collectors that take a connection and say nothing.
TEST(OtlpSinkTest, ASilentCollectorHoldsTheEndUpNoLongerThanIsSaid) {
  class Silent final : public otlp::TraceService::Service {
   public:
    grpc::Status Export(grpc::ServerContext*, const otlp::ExportTraceServiceRequest*,
                        otlp::ExportTraceServiceResponse*) override {
      may_answer.WaitForNotification();
      return grpc::Status::OK;
    }
    absl::Notification may_answer;
  } silent;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&silent);
  const auto server = builder.BuildAndStart();
  auto sink = std::make_unique<OtlpSink>(absl::StrCat("127.0.0.1:", port), "");
  sink->Write(testing::SomeTraces(3));
  const absl::Time begin = SteadyNow();
  EXPECT_FALSE(sink->Advance(absl::Milliseconds(50)));
  EXPECT_EQ(sink->dropped(), 0);
  sink->End();
  EXPECT_EQ(sink->dropped(), 3) << "before the sink has gone, with which its count goes";
  EXPECT_TRUE(sink->Advance(absl::ZeroDuration())) << "nothing is left";
  sink = nullptr;
  EXPECT_LT(SteadyNow() - begin, OtlpSink::kLongestExport);
  silent.may_answer.Notify();
}

}  // namespace
}  // namespace tilewire::service
