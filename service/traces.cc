// SPDX-License-Identifier: Apache-2.0
#include "service/traces.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "service/models/statistics.h"
#include "service/observe/host_name.h"
#include "service/trace/otlp_sink.h"

namespace tilewire::service {
namespace {

const char* ModeOf(const TraceFlags& traces) {
  if (traces.file.empty()) return "opentelemetry";
  return traces.form == TraceForm::kChrome ? "chrome" : "triton";
}

}  // namespace

Traces::Traces(const Flags& flags, const ModelRepository* models) {
  const TraceFlags& traces = flags.traces;
  std::vector<std::unique_ptr<TraceSink>> sinks;
  if (!traces.file.empty()) {
    auto file = std::make_unique<TraceFile>(traces.file, traces.form);
    file_ = file.get();
    sinks.push_back(std::move(file));
  }
  if (!traces.otlp_endpoint.empty()) {
    sinks.push_back(std::make_unique<OtlpSink>(traces.otlp_endpoint, HostName()));
  }
  if (sinks.empty()) return;
  const auto name_of = [models](uint32_t number) -> TraceMaker::Name {
    Statistics::Name name = models->statistics().NameOf(number);
    return {std::move(name.model), name.version};
  };
  tracer_ = std::make_unique<Tracer>(
      Tracer::Options{
          .terms = traces.terms, .name_of = name_of, .file = traces.file, .mode = ModeOf(traces)},
      std::move(sinks));
}

absl::Status Traces::Begin() {
  if (file_ == nullptr) return absl::OkStatus();
  const absl::Status begun = file_->Begin();
  if (begun.ok()) return begun;
  return absl::Status(begun.code(), absl::StrCat("--trace_file: ", begun.message()));
}

}  // namespace tilewire::service
