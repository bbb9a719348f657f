// SPDX-License-Identifier: Apache-2.0
//
// One method's work on one request.
#ifndef SERVICE_RPC_JOB_H_
#define SERVICE_RPC_JOB_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "service/models/statistics.h"
#include "service/observe/flight_record.h"
#include "service/observe/refusal.h"
#include "service/schedule/work.h"

namespace tilewire::service {

class Call;

// When a call came, began to run, had its plan and ended; InfinitePast() if that never happened.
struct CallTimes {
  absl::Time arrival;
  absl::Time start = absl::InfinitePast();
  absl::Time plan = absl::InfinitePast();
  absl::Time end = absl::InfinitePast();
};

class Job {
 public:
  virtual ~Job() = default;
  // On the thread that received it: decodes, judges, and says what the scheduler has to know. May
  // not compute.
  virtual absl::Status Prepare(WorkTerms* terms) = 0;
  // See Work::Operations(); after Prepare().
  virtual std::optional<int64_t> Operations() const { return 0; }
  // Whether its work is another's: Start() begins it after Prepare(), without a place in the queue,
  // and Run() encodes the answer when it has succeeded.
  virtual bool IsAwaited() const { return false; }
  // `done` is called once, on any thread, perhaps before this returns.
  virtual void Start(std::function<void(const absl::Status&)> done) { done(absl::OkStatus()); }
  // On a thread that computes. `call` gives the limits of the work.
  virtual absl::Status Run(Call& call) = 0;
  // The client's name of the request; after Prepare() has decoded it. Valid as long as the job.
  virtual absl::string_view RequestId() const { return ""; }
  // Once, at the end, whether or not it was prepared and has run: for those that count. `refusal`:
  // why the call's owner refused it, if it did. `record` holds what the call knows, and gets what
  // only the job does. Returns who is to be told how long the answer took to be written; null: no
  // one.
  virtual std::shared_ptr<VersionStatistics> Account(const CallTimes&, const absl::Status&,
                                                     RequestRefusal /*refusal*/,
                                                     FlightRecord* /*record*/) {
    return nullptr;
  }
  // Called when the owner is done with the job. A job that serves one call after the other is kept
  // here.
  virtual void Release() { delete this; }
};

struct ReleaseJob {
  void operator()(Job* job) const { job->Release(); }
};
using OwnedJob = std::unique_ptr<Job, ReleaseJob>;

}  // namespace tilewire::service

#endif  // SERVICE_RPC_JOB_H_
