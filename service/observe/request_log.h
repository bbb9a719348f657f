// SPDX-License-Identifier: Apache-2.0
//
// Counts every request by its outcome, and writes one line for each that was refused, failed or
// slow, at most kLinesPerSecond of them; the next line says how many were left out. Lines hold no
// payload. Thread-safe.
#ifndef SERVICE_OBSERVE_REQUEST_LOG_H_
#define SERVICE_OBSERVE_REQUEST_LOG_H_

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

namespace tilewire::service {

struct EndedRequest {
  absl::string_view method, model;
  const absl::Status* status;
  std::function<std::string()> peer;  // asked only if a line is written
  absl::Duration waited, ran;
};

class RequestLog {
 public:
  static constexpr int kLinesPerSecond = 10;
  static constexpr size_t kCodes = 17;  // of absl::StatusCode

  // Requests that took longer, waiting included, are slow.
  explicit RequestLog(absl::Duration slow) : slow_(slow) {}

  void Ended(const EndedRequest& request) ABSL_LOCKS_EXCLUDED(mutex_);

  int64_t Requests(absl::StatusCode code) const { return by_code_.Sum(static_cast<size_t>(code)); }
  int64_t Slow() const { return by_code_.Sum(kCodes); }

 private:
  // Whether a line may be written now, and how many were not since the last one.
  bool MayWrite(int64_t* left_out) ABSL_LOCKS_EXCLUDED(mutex_);

  const absl::Duration slow_;
  Counters<kCodes + 1> by_code_;  // and the slow ones
  threading::Mutex mutex_;
  absl::Time second_ ABSL_GUARDED_BY(mutex_);
  int lines_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tilewire::service

#endif  // SERVICE_OBSERVE_REQUEST_LOG_H_
