// SPDX-License-Identifier: Apache-2.0
//
// Counts every request by its outcome, and writes one line for each that was refused, failed or
// slow, at most kLinesPerSecond of them; the next line says how many were left out. With
// AccessLog::kAll, and while lines of level debug are logged, there is one for each request.
// Likewise for answers that were not read, so that what was refused for want of their memory does
// not hide them. Lines hold no payload. Thread-safe.
#ifndef SERVICE_OBSERVE_REQUEST_LOG_H_
#define SERVICE_OBSERVE_REQUEST_LOG_H_

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/threading/mutex.h"
#include "service/observe/counters.h"
#include "service/observe/status_codes.h"

namespace tilewire::service {

// Who sent a request.
struct RequestOrigin {
  std::string peer;
  std::string id;        // of the request: the client's, or one that the server made
  std::string trace_id;  // of the trace that it is a part of; may be empty
};

// Which requests get a line: those that were refused, failed or slow, none, or all, each.
enum class AccessLog { kBad, kOff, kAll };

struct EndedRequest {
  absl::string_view method, model;
  const absl::Status* status;
  std::function<RequestOrigin()> origin;  // asked only if a line is written
  absl::Duration waited, ran;
};

class RequestLog {
 public:
  static constexpr int kLinesPerSecond = 10;

  // Requests that took longer, waiting included, are slow.
  explicit RequestLog(absl::Duration slow, AccessLog access = AccessLog::kBad)
      : slow_(slow), access_(access) {}

  void Ended(const EndedRequest& request) ABSL_LOCKS_EXCLUDED(mutex_);
  // Its client did not read the answer, and is told the status: after Ended(), which said OK. Its
  // times are not looked at.
  void EndedUnread(const EndedRequest& request) ABSL_LOCKS_EXCLUDED(mutex_);

  int64_t Requests(absl::StatusCode code) const { return by_code_.Sum(IndexOf(code)); }
  int64_t Slow() const { return by_code_.Sum(kSlow); }
  int64_t Unread() const { return by_code_.Sum(kUnread); }

 private:
  static constexpr size_t kSlow = kStatusCodes, kUnread = kStatusCodes + 1;

  enum Kind : size_t { kEnded, kEndedUnread };
  // The lines of one kind written in the current second.
  struct Lines {
    absl::Time second;
    int written = 0;
    int64_t left_out = 0;
  };

  // Whether a line may be written now. Writes how many were left out since the last one.
  bool MayWrite(Kind kind) ABSL_LOCKS_EXCLUDED(mutex_);

  const absl::Duration slow_;
  const AccessLog access_;
  Counters<kStatusCodes + 2> by_code_;  // and the slow ones, and those whose answer was not read
  threading::Mutex mutex_;
  std::array<Lines, 2> lines_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tilewire::service

#endif  // SERVICE_OBSERVE_REQUEST_LOG_H_
