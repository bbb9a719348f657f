// SPDX-License-Identifier: Apache-2.0
//
// The slowest requests of each model in each minute of the last hour, with their story: what ran
// while they waited, whether their plan had to be made, how long their like usually takes, and
// whether the control group held the process back. Stories are made from the flight records by the
// thread that looks at them (the timer's), never by a request's, and leave out runs that are still
// going on at that moment. Thread-safe, but for Look().
#ifndef SERVICE_OBSERVE_SLOW_REQUESTS_H_
#define SERVICE_OBSERVE_SLOW_REQUESTS_H_

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "engine/threading/mutex.h"
#include "service/observe/cpu_throttling.h"
#include "service/observe/cpu_wait.h"
#include "service/observe/flight_record.h"

namespace tilewire::service {

// A request and its story.
struct SlowRequest {
  // Requests of one version that ran while it waited, and how long they ran within that time.
  struct Ahead {
    uint32_t model = 0;
    uint32_t requests = 0;
    int64_t run_ns = 0;
  };
  static constexpr size_t kMostAhead = 8;

  FlightRecord record;
  FlightId id = {};
  // The median of the latest runs with its plan, from the start of each to its encoded answer; 0:
  // it was the first.
  int64_t usual_ns = 0;
  int64_t throttled_ns = 0;  // of all cores together, while it was in the server, at most
  uint32_t beside = 0;       // requests that ran while it ran
  uint32_t ahead_count = 0;  // of `ahead`, those that ran longest first
  std::array<Ahead, kMostAhead> ahead = {};

  // From the start of its run to its encoded answer.
  int64_t RunNs() const { return record.RunningNs(); }
};

// The reasons why it was slow, for people: "371 ms waiting, while 9 requests of vgg ran; ...".
// `name_of` names versions by their number.
std::string StoryText(const SlowRequest& request,
                      absl::FunctionRef<std::string(uint32_t model)> name_of);

class SlowRequests {
 public:
  static constexpr size_t kPerMinute = 8, kMinutes = 60;
  // How often Look() looks: often enough to see each record of a ring before it is overwritten, at
  // 80,000 requests per second and thread.
  static constexpr int64_t kBetweenLooksNs = 50'000'000;

  explicit SlowRequests(const FlightRecorder* flights, const std::string& root = "")
      : flights_(*flights), throttling_(root), cpu_wait_(root) {}

  // Reads what has been recorded since the last look, if that is long enough ago. By one thread.
  void Look(int64_t now_ns) ABSL_LOCKS_EXCLUDED(mutex_);

  // The requests that ended at `since_ns` or later, of the versions that `is_wanted`, the slowest
  // first, `most` of them.
  std::vector<SlowRequest> Find(absl::FunctionRef<bool(uint32_t model)> is_wanted, int64_t since_ns,
                                size_t most) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Records that were overwritten before a look.
  uint64_t missed() const ABSL_LOCKS_EXCLUDED(mutex_);
  // See CpuThrottling::total_ns().
  int64_t throttled_ns() const ABSL_LOCKS_EXCLUDED(mutex_);
  // As of the last look.
  CpuWait::Sums cpu_wait() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Minute {
    int64_t number = 0;  // since 1970
    std::vector<SlowRequest> slowest;
  };
  using Minutes = std::deque<Minute>;
  // The latest runs of one plan.
  struct Usual {
    static constexpr uint32_t kRuns = 31;
    uint64_t plan_key = 0;
    uint32_t runs = 0;
    std::array<int64_t, kRuns> ns = {};
  };
  static constexpr size_t kUsuals = 1024;

  // The time that a request of a version has to exceed in the latest minute with kPerMinute of it.
  struct Bar {
    int64_t minute = -1, total_ns = 0;
  };

  int64_t UsualNs(uint64_t plan_key) const;
  void CountRun(const FlightRecord& record);
  bool IsBelowBar(const FlightRecord& record) const;
  SlowRequest StoryOf(const FlightRecord& record, absl::string_view id) const;
  // The minute of the request, which has a place in it if it is slow enough.
  const Minute& Keep(const SlowRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Tell(const FlightRecord& record, absl::string_view id) ABSL_LOCKS_EXCLUDED(mutex_);
  void ForgetBefore(int64_t minute) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const FlightRecorder& flights_;
  // Touched by the thread that looks only.
  int64_t looked_ns_ = 0;
  FlightRecorder::Cursor cursor_;
  CpuThrottling throttling_;
  CpuWait cpu_wait_;
  std::unordered_map<uint32_t, Bar> bars_;                   // by model
  std::vector<Usual> usuals_ = std::vector<Usual>(kUsuals);  // by a part of the key

  mutable threading::Mutex mutex_;
  std::unordered_map<uint32_t, Minutes> by_model_ ABSL_GUARDED_BY(mutex_);
  uint64_t missed_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t throttled_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  CpuWait::Sums cpu_wait_sums_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tilewire::service

#endif  // SERVICE_OBSERVE_SLOW_REQUESTS_H_
