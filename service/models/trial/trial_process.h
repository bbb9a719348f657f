// SPDX-License-Identifier: Apache-2.0
//
// The other side of a trial (trial.h): a process that tries one model out and says how it went.
//
//   TrialProcess process;
//   if (process.Begin()) process.Try();
//   return 1;  // no request arrived
#ifndef SERVICE_MODELS_TRIAL_TRIAL_PROCESS_H_
#define SERVICE_MODELS_TRIAL_TRIAL_PROCESS_H_

#include <string>

#include "absl/status/status.h"
#include "protos/trial.pb.h"

namespace tilewire::service {

// The one argument of a process that is a trial.
constexpr char kTrialArgument[] = "--trial_process";
inline bool IsTrialProcess(int argc, char** argv) {
  return argc == 2 && std::string(argv[1]) == kTrialArgument;
}

// At most one in a process. It begins while the process has a single thread, and is used on it.
class TrialProcess {
 public:
  // Takes the socket, which is standard input and output, receives the request, and bounds this
  // process: its memory, its priority, and its life, which ends with the thread that asked. It
  // reports its progress from then on. False if no request arrives.
  bool Begin();
  const trial::TrialRequest& request() const { return request_; }

  // Loads and runs the model, reports the end, and ends this process.
  [[noreturn]] void Try();

 private:
  trial::TrialRequest request_;
};

}  // namespace tilewire::service

#endif  // SERVICE_MODELS_TRIAL_TRIAL_PROCESS_H_
