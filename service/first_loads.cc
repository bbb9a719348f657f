// SPDX-License-Identifier: Apache-2.0
#include "service/first_loads.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <vector>

#include "absl/strings/str_cat.h"
#include "spdlog/spdlog.h"

namespace tilewire::service {

void FirstLoads::LogEnd(int signal) const {
  if (nothing_to_serve()) {
    spdlog::info("no model could be loaded: draining");
  } else {
    spdlog::info("signal {}: draining", signal);
  }
}

absl::Status FirstLoads::Reason() const {
  if (!spdlog::should_log(spdlog::level::err)) return models_->All()[0]->load_status;
  return absl::FailedPreconditionError("no model could be loaded; the log says why");
}

void FirstLoads::End() {
  server_->StartAccepting();
  nothing_to_serve_.store(models_are_named_ && !models_->AnyReady());
  Announce();
  if (nothing_to_serve()) kill(getpid(), SIGTERM);
}

void FirstLoads::Changed() {
  server_->ModelsChanged();
  if (done_) notify_->State(server_->Ready(), StateText());
}

// A service manager that waits for the start goes on when all has been tried, also if a model has
// failed: the server serves the others, and would else be one that starts for ever.
void FirstLoads::Announce() {
  done_ = true;
  const std::string state = StateText();
  std::printf("tilewire-server %s\n", state.c_str());
  std::fflush(stdout);
  notify_->State(!nothing_to_serve(), state);
}

std::string FirstLoads::StateText() const {
  int ready = 0;
  std::vector<ModelRepository::Served> all = models_->All();
  std::erase_if(all, [](const ModelRepository::Served& served) { return !IsLive(*served); });
  for (const ModelRepository::Served& served : all) ready += served->model != nullptr ? 1 : 0;
  return absl::StrCat(server_->Ready() ? "ready" : "not ready", ": ", ready, " of ", all.size(),
                      " model versions loaded");
}

}  // namespace tilewire::service
