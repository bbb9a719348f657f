// SPDX-License-Identifier: Apache-2.0
//
// Traces to a collector of OpenTelemetry's, in batches over OTLP/gRPC, one at a time. A batch is
// sent three times at most if the collector is busy or away; traces that find too many others
// waiting are dropped. No call waits for the collector longer than it is told to.
// Thread-compatible.
#ifndef SERVICE_TRACE_OTLP_SINK_H_
#define SERVICE_TRACE_OTLP_SINK_H_

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "grpcpp/grpcpp.h"
#include "protos/otlp_trace.grpc.pb.h"
#include "service/trace/trace.h"
#include "service/trace/trace_sink.h"

namespace tilewire::service {

namespace otlp = opentelemetry::proto::collector::trace::v1;

//   kInvalidArgument  it is not HOST:PORT
absl::Status CheckOtlpEndpoint(absl::string_view endpoint);

// The request that exports the traces. `instance` tells one server from another.
otlp::ExportTraceServiceRequest ExportRequestOf(absl::Span<const Trace> traces,
                                                const std::string& instance);

class OtlpSink final : public TraceSink {
 public:
  static constexpr size_t kMostWaiting = 4096;  // traces
  static constexpr size_t kMostAtATime = 256;
  static constexpr int kAttempts = 3;
  static constexpr absl::Duration kLongestExport = absl::Seconds(5);
  static constexpr absl::Duration kPause = absl::Milliseconds(200);  // doubled by each attempt

  // The endpoint is one that CheckOtlpEndpoint() finds to be good.
  OtlpSink(const std::string& endpoint, const std::string& instance);
  ~OtlpSink() override;

  void Write(absl::Span<const Trace> traces) override;
  bool Advance(absl::Duration longest) override;
  // Cancels what is on its way.
  void End() override;

 private:
  // A call that gRPC has.
  struct Sending {
    grpc::ClientContext context;
    otlp::ExportTraceServiceResponse response;
    grpc::Status status;
    std::unique_ptr<grpc::ClientAsyncResponseReader<otlp::ExportTraceServiceResponse>> reader;
  };

  void Send();
  void Sent();
  void Forget(int64_t dropped, const std::string& why);

  const std::string endpoint_, instance_;
  const std::unique_ptr<otlp::TraceService::Stub> collector_;
  grpc::CompletionQueue queue_;
  std::deque<Trace> waiting_;
  std::vector<Trace> batch_;  // that is being sent, or is to be sent again
  int attempts_ = 0;          // of the batch
  absl::Time not_before_ = absl::InfinitePast();
  std::unique_ptr<Sending> sending_;
};

}  // namespace tilewire::service

#endif  // SERVICE_TRACE_OTLP_SINK_H_
