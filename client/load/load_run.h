// SPDX-License-Identifier: Apache-2.0
//
// One load while it runs. The thread that calls Run() starts the calls of a closed loop and shows
// progress; a pacer sends what is due at a time of its own (every request of an open loop, the
// next one of a caller that thinks or was pushed back); collectors take the answers, and in a
// closed loop without pauses send the caller's next request.
#ifndef CLIENT_LOAD_LOAD_RUN_H_
#define CLIENT_LOAD_LOAD_RUN_H_

#include <grpcpp/channel.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>

#include <memory>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/load/answer_check.h"
#include "client/load/load_options.h"
#include "client/load/load_tally.h"
#include "client/load/request_mix.h"

namespace tilewire::client {

class LoadRun {
 public:
  // All arguments outlive the run.
  LoadRun(const LoadOptions& options, const std::vector<std::unique_ptr<Client>>& clients,
          RequestMix* mix, AnswerCheck* check);

  LoadReport Run(const LoadProgress& progress);

 private:
  struct Call;
  using Due = std::pair<absl::Time, size_t>;  // when, and on which connection

  void PaceOpenLoop();
  void PaceCallers();
  // Sleeps until `time` or the end of the load, whichever is first.
  void SleepUntil(absl::Time time);
  void CollectAnswers(grpc::CompletionQueue* answers);

  // Takes the right to send one more request, and says which; false: the load is over, or the
  // request is to remain unsent.
  bool Admit(Call* call) ABSL_LOCKS_EXCLUDED(mutex_);
  // A request that is due then, if it is admitted.
  bool Send(size_t connection, absl::Time due) ABSL_LOCKS_EXCLUDED(mutex_);
  // A request of a closed loop's caller, for which the load may be over.
  void SendOrLeave(size_t caller, absl::Time due) ABSL_LOCKS_EXCLUDED(mutex_);
  void SendNext(const Call& last) ABSL_LOCKS_EXCLUDED(mutex_);
  // How long the caller waits because the server is gone.
  absl::Duration RetreatAfter(const Call& last);
  void SendFirst(size_t caller) ABSL_LOCKS_EXCLUDED(mutex_);
  // Leaves the caller's next request to the pacer.
  void SendLater(size_t caller, absl::Time due) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Count(Call* call) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends what still runs; `because`, not empty, is told if that was anything.
  void Stop(absl::string_view because) ABSL_LOCKS_EXCLUDED(mutex_);
  // Why the load is to end now; empty: it is to go on.
  std::string WhyToStop() ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether more requests than the options allow took or have waited longer than their bound.
  bool TooSlow() ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether no request that is due then is to be sent.
  bool IsOver(absl::Time due) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  bool AllAnswered() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Waits a moment for the last answer.
  bool Finished() ABSL_LOCKS_EXCLUDED(mutex_);

  const LoadOptions& options_;
  RequestMix* const mix_;
  AnswerCheck* const check_;
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;        // one per connection
  std::vector<std::unique_ptr<grpc::CompletionQueue>> answers_;  // one per collector
  const absl::Time start_, counted_from_, end_;
  // Per caller: the last pause because the server was gone. Used by its collector only.
  std::vector<absl::Duration> retreats_;

  absl::Mutex mutex_;
  // Not conditions of the mutex, which would be evaluated at every request.
  absl::CondVar repace_;  // for the pacer of callers: another request is the next one, or none is
  absl::CondVar ended_;   // nothing is left to wait for
  ThinkTime think_ ABSL_GUARDED_BY(mutex_);
  LoadTally tally_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<Call*> outstanding_ ABSL_GUARDED_BY(mutex_);
  std::priority_queue<Due, std::vector<Due>, std::greater<>> pausing_ ABSL_GUARDED_BY(mutex_);
  int64_t live_callers_ ABSL_GUARDED_BY(mutex_) = 0;  // of a closed loop: those that will go on
  int64_t issued_ ABSL_GUARDED_BY(mutex_) = 0;        // requests that count
  bool pacing_ ABSL_GUARDED_BY(mutex_) = false;       // an open loop has more to send
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tilewire::client

#endif  // CLIENT_LOAD_LOAD_RUN_H_
