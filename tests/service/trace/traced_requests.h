// SPDX-License-Identifier: Apache-2.0
//
// Requests that have ended, with and without a client's trace, for tests.
#ifndef TESTS_SERVICE_TRACE_TRACED_REQUESTS_H_
#define TESTS_SERVICE_TRACE_TRACED_REQUESTS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "service/observe/steady_time.h"
#include "service/trace/trace.h"
#include "service/trace/trace_queue.h"

namespace tilewire::service::testing {

inline constexpr int64_t kBegin = 1'700'000'000'000'000'000;

// A name that would end a string, a line or an object of JSON, and is not UTF-8.
inline const std::string& Hostile() {
  static const std::string text("a\"}],\n<b>\\\x01\xff\xc3 b", 15);
  return text;
}

// Came `at_us` after kBegin: decoded in 1 us, waited 2, found its plan in 3, ran 40, encoded in 5,
// was written in 6.
inline TracedRequest RequestAt(int64_t at_us, absl::string_view id = "") {
  TracedRequest request;
  request.record.arrival_ns = kBegin + at_us * 1000;
  request.record.decode_ns = 1000;
  request.record.queue_ns = 2000;
  request.record.plan_ns = 3000;
  request.record.run_ns = 40'000;
  request.record.encode_ns = 5000;
  request.record.write_ns = 6000;
  request.record.model = 7;
  request.record.rows = 3;
  request.trace_id = MadeTraceId();
  std::copy_n(id.begin(), std::min(id.size(), request.id.size()), request.id.begin());
  return request;
}

// The steady clock when the server's clock says so.
inline LongestSteps::Clock::time_point SteadyAt(int64_t ns) {
  const LongestSteps::Clock::time_point first;
  return first + absl::ToChronoNanoseconds(absl::FromUnixNanos(ns) - SteadyTime(first));
}

// With seven steps in its run, each after 1 us and as long as its number says; the last but one has
// a hostile name.
inline TracedRequest WithSteps(TracedRequest request) {
  const int64_t run_ns = request.record.arrival_ns + request.record.decode_ns +
                         request.record.queue_ns + request.record.plan_ns;
  int64_t number = 0;
  for (const int us : {3, 1, 5, 2, 6, 4, 7}) {
    const std::string node = number == 5 ? Hostile() : absl::StrCat("conv", number);
    request.longest_steps.Add(node, SteadyAt(run_ns + number * 1000),
                              std::chrono::microseconds(us));
    ++number;
  }
  return request;
}

// A part of the trace 0102..10 and of its span 1112..18.
inline TracedRequest AsPart(TracedRequest request) {
  for (size_t i = 0; i < request.trace_id.size(); ++i) request.trace_id[i] = i + 1;
  for (size_t i = 0; i < request.parent_id.size(); ++i) request.parent_id[i] = 17 + i;
  return request;
}

// A request to version 3 of the model.
inline Trace TraceOf(const TracedRequest& request, const std::string& model = "cats") {
  return TraceMaker([&model](uint32_t) { return TraceMaker::Name{model, 3}; }).Make(request);
}

inline std::vector<Trace> SomeTraces(int count) {
  std::vector<Trace> traces;
  for (int i = 0; i < count; ++i)
    traces.push_back(TraceOf(RequestAt(100 * i, absl::StrCat("id", i))));
  return traces;
}

// An empty folder for one test.
inline std::filesystem::path EmptyFolder(const std::string& name) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

}  // namespace tilewire::service::testing

#endif  // TESTS_SERVICE_TRACE_TRACED_REQUESTS_H_
