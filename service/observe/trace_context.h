// SPDX-License-Identifier: Apache-2.0
//
// The trace that a request is a part of, as the header `traceparent` names it (W3C Trace Context):
// "00-<trace id, 32 hex digits>-<parent id, 16>-<flags, 2>". Pure function.
#ifndef SERVICE_OBSERVE_TRACE_CONTEXT_H_
#define SERVICE_OBSERVE_TRACE_CONTEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace tilewire::service {

struct TraceContext {
  std::string trace_id, parent_id;  // lower-case hex digits; empty without a trace
  bool sampled = false;
};

// Without a trace where the header is not one: the request is served all the same.
TraceContext ParseTraceParent(absl::string_view header);

}  // namespace tilewire::service

#endif  // SERVICE_OBSERVE_TRACE_CONTEXT_H_
