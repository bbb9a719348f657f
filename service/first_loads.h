// SPDX-License-Identifier: Apache-2.0
//
// The server's reaction to loads: at the end of the first round, in which every model found at the
// start was tried, and whenever a model's state changes after that.
#ifndef SERVICE_FIRST_LOADS_H_
#define SERVICE_FIRST_LOADS_H_

#include <atomic>
#include <string>

#include "absl/status/status.h"
#include "service/models/model_repository.h"
#include "service/notify_socket.h"
#include "service/server.h"

namespace tilewire::service {

// End() and Changed() are called by the loading thread, the others by any.
class FirstLoads {
 public:
  // `models_are_named`: on the command line, so that a server without any of them has no use.
  FirstLoads(bool models_are_named, const ModelRepository* models, Server* server,
             NotifySocket* notify)
      : models_are_named_(models_are_named), models_(models), server_(server), notify_(notify) {}

  // None of the models that the command line names did load.
  bool nothing_to_serve() const { return nothing_to_serve_.load(); }
  // Says why the server ends: this, or the signal.
  void LogEnd(int signal) const;
  // The reason why nothing can be served, unless the log has given it.
  absl::Status Reason() const;

  void End();
  // A model's state may have changed.
  void Changed();

 private:
  void Announce();
  std::string StateText() const;

  const bool models_are_named_;
  const ModelRepository* const models_;
  Server* const server_;
  NotifySocket* const notify_;
  bool done_ = false;  // of the loading thread
  std::atomic<bool> nothing_to_serve_{false};
};

}  // namespace tilewire::service

#endif  // SERVICE_FIRST_LOADS_H_
