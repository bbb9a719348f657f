// SPDX-License-Identifier: Apache-2.0
#include "service/trace/otlp_sink.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "service/observe/steady_time.h"
#include "service/version.h"

namespace tilewire::service {
namespace {

std::shared_ptr<grpc::Channel> ChannelTo(const std::string& endpoint) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 5000);
  return grpc::CreateCustomChannel(absl::StrCat("dns:///", endpoint),
                                   grpc::InsecureChannelCredentials(), arguments);
}

// As OTLP lists them.
bool MayTryAgain(grpc::StatusCode code) {
  constexpr grpc::StatusCode kPassing[] = {
      grpc::StatusCode::CANCELLED,    grpc::StatusCode::DEADLINE_EXCEEDED,
      grpc::StatusCode::ABORTED,      grpc::StatusCode::RESOURCE_EXHAUSTED,
      grpc::StatusCode::OUT_OF_RANGE, grpc::StatusCode::UNAVAILABLE,
      grpc::StatusCode::DATA_LOSS};
  return std::find(std::begin(kPassing), std::end(kPassing), code) != std::end(kPassing);
}

template <typename Message>
void AddText(const char* key, const std::string& value, Message* message) {
  otlp::KeyValue* const added = message->add_attributes();
  added->set_key(key);
  added->mutable_value()->set_string_value(value);
}

void AddNumber(const char* key, int64_t value, otlp::Span* span) {
  otlp::KeyValue* const added = span->add_attributes();
  added->set_key(key);
  added->mutable_value()->set_int_value(value);
}

template <typename Id>
std::string BytesOf(const Id& id) {
  return id == Id() ? std::string() : std::string(id.begin(), id.end());
}

// Whether the server has failed, by OpenTelemetry's conventions for gRPC; else the request has.
bool IsOfServer(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDataLoss:
      return true;
    default:
      return false;
  }
}

// Name and attributes of the whole request, by the same conventions.
void DescribeRequest(const Trace& trace, otlp::Span* span) {
  constexpr char kService[] = "inference.GRPCInferenceService";
  const FlightRecord& record = trace.record;
  const auto code = static_cast<absl::StatusCode>(record.code);
  const bool in_stream = (record.flags & FlightRecord::kInStream) != 0;
  const std::string method = in_stream ? "ModelStreamInfer" : "ModelInfer";
  span->set_name(absl::StrCat(kService, "/", method));
  span->set_kind(otlp::Span::SPAN_KIND_SERVER);
  AddText("rpc.system", "grpc", span);
  AddText("rpc.service", kService, span);
  AddText("rpc.method", method, span);
  AddNumber("rpc.grpc.status_code", record.code, span);
  AddText("tilewire.model", trace.model, span);
  AddNumber("tilewire.version", trace.version, span);
  if (!trace.request_id.empty()) AddText("tilewire.request_id", trace.request_id, span);
  AddNumber("tilewire.rows", record.rows, span);
  if (!IsOfServer(code)) return;
  span->mutable_status()->set_code(otlp::SpanStatus::STATUS_CODE_ERROR);
  span->mutable_status()->set_message(absl::StatusCodeToString(code));
}

void AddSpans(const Trace& trace, otlp::ScopeSpans* spans) {
  for (const TraceSpan& one : trace.spans) {
    const bool is_request = &one == &trace.request();
    otlp::Span* const span = spans->add_spans();
    span->set_trace_id(BytesOf(trace.id));
    span->set_span_id(BytesOf(one.id));
    span->set_parent_span_id(BytesOf(one.parent_id));
    span->set_name(one.name);
    span->set_kind(otlp::Span::SPAN_KIND_INTERNAL);
    span->set_start_time_unix_nano(one.start_ns);
    span->set_end_time_unix_nano(one.end_ns);
    if (is_request) DescribeRequest(trace, span);
  }
}

}  // namespace

absl::Status CheckOtlpEndpoint(absl::string_view endpoint) {
  const size_t colon = endpoint.rfind(':');
  const absl::string_view host = endpoint.substr(0, std::min(colon, endpoint.size()));
  int port = 0;
  const bool has_port = colon != absl::string_view::npos &&
                        absl::SimpleAtoi(endpoint.substr(colon + 1), &port) && port > 0 &&
                        port < 65536;
  const bool is_ipv6 = absl::StartsWith(host, "[") && absl::EndsWith(host, "]");
  const bool is_plain = !host.empty() && host.find_first_of("/[]: \t") == absl::string_view::npos;
  if (has_port && (is_plain || (is_ipv6 && host.size() > 2))) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "'", endpoint, "' is not HOST:PORT, as localhost:4317 or [::1]:4317, without a scheme"));
}

otlp::ExportTraceServiceRequest ExportRequestOf(absl::Span<const Trace> traces,
                                                const std::string& instance) {
  otlp::ExportTraceServiceRequest request;
  otlp::ResourceSpans* const of_server = request.add_resource_spans();
  AddText("service.name", "tilewire-server", of_server->mutable_resource());
  AddText("service.version", kVersion, of_server->mutable_resource());
  AddText("service.instance.id", instance, of_server->mutable_resource());
  otlp::ScopeSpans* const spans = of_server->add_scope_spans();
  spans->mutable_scope()->set_name("tilewire");
  for (const Trace& trace : traces) AddSpans(trace, spans);
  return request;
}

OtlpSink::OtlpSink(const std::string& endpoint, const std::string& instance)
    : TraceSink(TraceLoss::kCollector),
      endpoint_(endpoint),
      instance_(instance),
      collector_(otlp::TraceService::NewStub(ChannelTo(endpoint))) {}

OtlpSink::~OtlpSink() {
  End();
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

// A call that is cancelled ends at once; the collector may have taken its traces all the same.
void OtlpSink::End() {
  if (sending_ != nullptr) {
    sending_->context.TryCancel();
    void* tag = nullptr;
    bool ok = false;
    if (queue_.Next(&tag, &ok)) Sent();
  }
  const size_t left = batch_.size() + waiting_.size();
  batch_.clear();
  waiting_.clear();
  if (left > 0) {
    Drop(static_cast<int64_t>(left),
         absl::StrCat("the collector at ", endpoint_, " has not taken them before the end"));
  }
}

void OtlpSink::Write(absl::Span<const Trace> traces) {
  const size_t room = kMostWaiting - std::min(kMostWaiting, waiting_.size());
  const size_t taken = std::min(room, traces.size());
  waiting_.insert(waiting_.end(), traces.begin(), traces.begin() + taken);
  if (taken == traces.size()) return;
  Drop(static_cast<int64_t>(traces.size() - taken),
       absl::StrCat("the collector at ", endpoint_, " is too slow"));
}

bool OtlpSink::Advance(absl::Duration longest) {
  const absl::Time end = SteadyNow() + longest;
  while (true) {
    if (sending_ == nullptr) {
      if (batch_.empty() && waiting_.empty()) return true;
      if (SteadyNow() < not_before_) return false;
      Send();
    }
    void* tag = nullptr;
    bool ok = false;
    const auto until = absl::ToChronoTime(absl::Now() + (end - SteadyNow()));
    if (queue_.AsyncNext(&tag, &ok, until) != grpc::CompletionQueue::GOT_EVENT) return false;
    Sent();
  }
}

// The next batch, or the one that was refused.
void OtlpSink::Send() {
  while (batch_.size() < kMostAtATime && !waiting_.empty()) {
    batch_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  ++attempts_;
  sending_ = std::make_unique<Sending>();
  sending_->context.set_deadline(absl::ToChronoTime(absl::Now() + kLongestExport));
  sending_->reader =
      collector_->AsyncExport(&sending_->context, ExportRequestOf(batch_, instance_), &queue_);
  sending_->reader->Finish(&sending_->response, &sending_->status, sending_.get());
}

void OtlpSink::Sent() {
  const std::unique_ptr<Sending> sent = std::move(sending_);
  const auto& partial = sent->response.partial_success();
  if (sent->status.ok()) {
    const auto most = static_cast<int64_t>(batch_.size());
    return Forget(std::clamp<int64_t>(partial.rejected_spans(), 0, most), partial.error_message());
  }
  if (MayTryAgain(sent->status.error_code()) && attempts_ < kAttempts) {
    not_before_ = SteadyNow() + kPause * (1 << (attempts_ - 1));
    return;
  }
  Forget(static_cast<int64_t>(batch_.size()), sent->status.error_message());
}

void OtlpSink::Forget(int64_t dropped, const std::string& why) {
  batch_.clear();
  attempts_ = 0;
  if (dropped == 0) return;
  Drop(dropped, absl::StrCat("the collector at ", endpoint_, " does not take them (", why, ")"));
}

}  // namespace tilewire::service
