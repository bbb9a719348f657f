// SPDX-License-Identifier: Apache-2.0
//
// Work that is refused at the door, or has waited for too long.
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "service/schedule/dispatcher.h"

namespace tilewire::service {
namespace {

constexpr absl::Duration kLeastRetry = absl::Milliseconds(5);
constexpr absl::Duration kMostRetry = absl::Seconds(5);

std::string Text(absl::Duration time) {
  return time < absl::Milliseconds(10)
             ? absl::StrFormat("%.1f ms", absl::ToDoubleMilliseconds(time))
             : absl::StrCat(absl::ToInt64Milliseconds(time), " ms");
}

}  // namespace

absl::Duration Dispatcher::PredictedWait(const std::string& model, int priority) const {
  return queue_.WorkAhead(model, priority) / threads_;
}

absl::Status Dispatcher::RefuseLate(const WorkTerms& terms, absl::Time now,
                                    absl::Duration expected) const {
  const absl::Duration wait = PredictedWait(terms.model, terms.priority);
  if (wait > options_.max_wait) {
    return absl::UnavailableError(absl::StrCat("it cannot be answered in its time: about ",
                                               Text(wait),
                                               " of work are ahead of it, and it may wait for ",
                                               Text(options_.max_wait), " (--max_queue_ms)"));
  }
  if (now + wait + expected <= terms.deadline) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      "it cannot be answered in its time: it takes about ", Text(expected), ", about ", Text(wait),
      " of work are ahead of it, and its deadline is in ", Text(terms.deadline - now)));
}

absl::Status Dispatcher::Refuse(Work* work, absl::Time now, absl::Duration expected) const {
  const WorkTerms& terms = work->terms();
  if (terms.deadline <= now) return absl::DeadlineExceededError("its deadline had passed");
  if (terms.work_class == WorkClass::kBackground) {
    if (static_cast<int>(background_.size()) < options_.max_waiting) return absl::OkStatus();
    work->refusal_ = RequestRefusal::kQueue;
    return absl::UnavailableError(
        absl::StrCat("the queue is full: ", background_.size(), " background requests wait"));
  }
  const auto here = queue_.size() + static_cast<int64_t>(running_.size());
  if (here >= options_.max_waiting + threads_) {
    work->refusal_ = RequestRefusal::kQueue;
    return absl::UnavailableError(
        absl::StrCat("the queue is full: ", here, " requests wait or run (--max_queue)"));
  }
  const int64_t of_model = queue_.SizeOf(terms.model);
  if (of_model >= options_.max_waiting_per_model + threads_) {
    work->refusal_ = RequestRefusal::kModelQueue;
    return absl::UnavailableError(absl::StrCat("the queue of this model is full: ", of_model,
                                               " requests wait (--max_queue_per_model)"));
  }
  if (!AllBusy() || queue_.size() == 0) return absl::OkStatus();
  absl::Status late = RefuseLate(terms, now, expected);
  if (!late.ok()) work->refusal_ = RequestRefusal::kTooLate;
  return late;
}

absl::Duration Dispatcher::RetryAfter(const std::string& model) const {
  threading::MutexLock lock(&mutex_);
  const absl::Duration wait = PredictedWait(model, std::numeric_limits<int>::min());
  return std::clamp(wait, kLeastRetry, kMostRetry);
}

void Dispatcher::EndTooLate(const std::vector<Work*>& expired, absl::Time now) const {
  for (Work* work : expired) {
    if (work->terms().deadline <= now) {
      work->End(absl::DeadlineExceededError("the deadline passed while the request waited"));
    } else {
      work->refusal_ = RequestRefusal::kTooLate;
      work->End(absl::UnavailableError(
          absl::StrCat("the request waited for ", Text(options_.max_wait), " (--max_queue_ms)")));
    }
  }
}

}  // namespace tilewire::service
