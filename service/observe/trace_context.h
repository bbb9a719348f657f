// SPDX-License-Identifier: Apache-2.0
//
// The trace that a request is a part of, as the header `traceparent` names it (W3C Trace Context):
// "00-<trace id, 32 hex digits>-<parent id, 16>-<flags, 2>". No function takes memory.
#ifndef SERVICE_OBSERVE_TRACE_CONTEXT_H_
#define SERVICE_OBSERVE_TRACE_CONTEXT_H_

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace tilewire::service {

// All zeros: none.
using TraceId = std::array<uint8_t, 16>;
using SpanId = std::array<uint8_t, 8>;

struct TraceContext {
  // Lower-case hex digits, parts of the header; empty without a trace.
  absl::string_view trace_id, parent_id;
  bool sampled = false;
};

// Without a trace where the header is not one: the request is served all the same.
TraceContext ParseTraceParent(absl::string_view header);

// A new id, most likely unlike all others. Thread-safe; no lock.
TraceId MadeTraceId();

// The bytes that lower-case hex digits stand for; as many as there are two digits each.
void ReadHexDigits(absl::string_view digits, absl::Span<uint8_t> bytes);

}  // namespace tilewire::service

#endif  // SERVICE_OBSERVE_TRACE_CONTEXT_H_
