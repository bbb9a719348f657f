// SPDX-License-Identifier: Apache-2.0
#include "service/trace/trace.h"

#include <cstddef>
#include <cstring>
#include <utility>

#include "engine/base/utf8.h"

namespace tilewire::service {
namespace {

std::mt19937_64 SeededBySystem() {
  std::random_device system;
  std::seed_seq seeds = {system(), system(), system(), system()};
  return std::mt19937_64(seeds);
}

}  // namespace

TraceMaker::TraceMaker(NameOf name_of) : name_of_(std::move(name_of)), random_(SeededBySystem()) {}

// Never all zeros, which stand for none.
template <typename Id>
Id TraceMaker::NewId() {
  Id id = {};
  while (id == Id()) {
    for (size_t at = 0; at < id.size(); at += sizeof(uint64_t)) {
      const uint64_t word = random_();
      std::memcpy(id.data() + at, &word, sizeof(word));
    }
  }
  return id;
}

Trace TraceMaker::Make(const TracedRequest& request) {
  const FlightRecord& record = request.record;
  const bool is_part = request.trace_id != TraceId();
  Trace trace = {.number = ++made_,
                 .id = is_part ? request.trace_id : NewId<TraceId>(),
                 .parent_id = request.parent_id,
                 .request_id = Utf8Text(TextOf(request.id)),
                 .record = record};
  if (record.model != 0) {
    Name name = name_of_(record.model);
    trace.model = Utf8Text(name.model);
    trace.version = name.version;
  }
  trace.spans.push_back({"request", NewId<SpanId>(), record.arrival_ns, record.EndNs()});
  const std::pair<const char*, int64_t> stages[] = {
      {"decode", record.decode_ns}, {"queue", record.queue_ns},   {"plan", record.plan_ns},
      {"run", record.run_ns},       {"encode", record.encode_ns}, {"write", record.write_ns}};
  int64_t at = record.arrival_ns;
  for (const auto& [name, ns] : stages) {
    if (ns > 0) trace.spans.push_back({name, NewId<SpanId>(), at, at + ns});
    at += ns;
  }
  return trace;
}

}  // namespace tilewire::service
