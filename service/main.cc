// SPDX-License-Identifier: Apache-2.0
//
// tilewire-server: reads its flags, loads the models, serves until SIGTERM or SIGINT, drains.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "google/protobuf/stubs/logging.h"
#include "service/flags.h"
#include "service/models/model_repository.h"
#include "service/observe/log_formatter.h"
#include "service/server.h"
#include "spdlog/sinks/stdout_color_sinks.h"
#include "spdlog/spdlog.h"

namespace tilewire::service {
namespace {

int Refuse(const absl::Status& status) {
  std::fprintf(stderr, "tilewire-server: %s\n", std::string(status.message()).c_str());
  return 2;
}

sigset_t EndSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

// From now on such a signal ends the process at once.
void EndAtNextSignal() {
  const sigset_t signals = EndSignals();
  struct sigaction at_once = {};
  at_once.sa_handler = [](int) { _exit(1); };
  sigaction(SIGTERM, &at_once, nullptr);
  sigaction(SIGINT, &at_once, nullptr);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

// While models load, such a signal ends the process at once: nothing has been admitted yet.
class EndWhileLoading {
 public:
  EndWhileLoading() : watcher_([this] { Watch(); }) {}
  ~EndWhileLoading() {
    loaded_.Notify();
    watcher_.join();
  }

 private:
  void Watch() {
    const sigset_t signals = EndSignals();
    constexpr timespec kPause = {.tv_sec = 0, .tv_nsec = 50'000'000};
    while (!loaded_.HasBeenNotified()) {
      const int signal = sigtimedwait(&signals, nullptr, &kPause);
      if (signal < 0) continue;
      spdlog::info("signal {}: ended while models were loading", signal);
      _exit(0);
    }
  }

  absl::Notification loaded_;
  std::thread watcher_;
};

void ListImplementations(cpu::Isa allowed) {
  std::printf("this CPU: %s, allowed: %s; * marks what can be used\n",
              std::string(cpu::IsaName(cpu::BestIsa())).c_str(),
              std::string(cpu::IsaName(allowed)).c_str());
  for (const ImplementationRow& row : AllImplementations()) {
    std::string types;
    for (DataType type : TypesOf(row)) absl::StrAppend(&types, " ", DataTypeName(type));
    std::printf("%c %-20s %-12s %-40s%s\n", allowed.Includes(row.isa) ? '*' : ' ',
                std::string(PrimitiveKindName(row.kind)).c_str(),
                std::string(cpu::IsaName(row.isa)).c_str(), std::string(row.name).c_str(),
                types.c_str());
  }
  std::printf(
      "best first; `tilewire primitive` tells which one a descriptor gets, and why the better "
      "ones refused\n");
}

absl::StatusOr<std::unique_ptr<ModelRepository>> OpenModels(const Flags& flags, Engine* engine) {
  const EndWhileLoading end_while_loading;
  return flags.model.empty() ? ModelRepository::OpenDirectory(flags.model_repository, engine)
                             : ModelRepository::OpenFile(flags.model, engine);
}

int Serve(const Flags& flags) {
  // Blocked before any thread starts, so that every thread inherits it and only sigwait() sees
  // them.
  const sigset_t signals = EndSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  if (!flags.engine.max_isa.Includes(cpu::Isa::kAvx2)) {
    spdlog::warn("without AVX2 every primitive runs as its reference: right, but slow");
  }
  absl::StatusOr<std::unique_ptr<Engine>> engine = Engine::Create(flags.engine);
  if (!engine.ok()) return Refuse(engine.status());
  const auto models = OpenModels(flags, engine->get());
  if (!models.ok()) return Refuse(models.status());
  auto server = Server::Start(engine->get(), models->get(), flags.server);
  if (!server.ok()) return Refuse(server.status());
  spdlog::info("{} threads, {}", (*engine)->options().threads,
               std::string(cpu::IsaName((*engine)->options().max_isa)));
  const bool ipv6 = flags.server.host.find(':') != std::string::npos;
  std::printf(
      ipv6 ? "tilewire-server listening on [%s]:%d\n" : "tilewire-server listening on %s:%d\n",
      flags.server.host.c_str(), (*server)->port());
  std::fflush(stdout);

  int signal = 0;
  sigwait(&signals, &signal);
  spdlog::info("signal {}: draining", signal);
  EndAtNextSignal();
  (*server)->Drain();
  spdlog::info("drained");
  return 0;
}

int Main(int argc, char** argv) {
  Flags flags;
  if (const std::optional<int> exit_code = ParseFlags(argc, argv, &flags)) return *exit_code;
  // The engine reads these two.
  setenv("TILEWIRE_VERBOSE", std::to_string(flags.verbose).c_str(), 1);
  setenv("TILEWIRE_DUMP_JIT", flags.dump_jit.c_str(), 1);
  setenv("GRPC_VERBOSITY", "NONE", 0);       // what matters is in the statuses
  google::protobuf::SetLogHandler(nullptr);  // a client's malformed strings fill no log
  spdlog::set_default_logger(spdlog::stderr_color_mt("tilewire"));
  spdlog::set_formatter(LogFormatter());
  spdlog::set_level(spdlog::level::from_str(flags.log_level));
  if (flags.list_implementations) {
    ListImplementations(flags.engine.max_isa);
    return 0;
  }
  return Serve(flags);
}

}  // namespace
}  // namespace tilewire::service

int main(int argc, char** argv) { return tilewire::service::Main(argc, argv); }
