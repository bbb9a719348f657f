// SPDX-License-Identifier: Apache-2.0
#include "service/serve.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "google/protobuf/stubs/logging.h"
#include "service/address.h"
#include "service/address_space.h"
#include "service/build_id.h"
#include "service/drain_signals.h"
#include "service/engine_start.h"
#include "service/first_loads.h"
#include "service/flags.h"
#include "service/front/open_port.h"
#include "service/last_words.h"
#include "service/memory_bounds.h"
#include "service/models/loader.h"
#include "service/models/model_repository.h"
#include "service/models/named_models.h"
#include "service/models/repository_scan.h"
#include "service/models/scan_remarks.h"
#include "service/models/trial/trial.h"
#include "service/models/uploads/upload_folder.h"
#include "service/monitoring_port.h"
#include "service/notify_socket.h"
#include "service/observe/background_log.h"
#include "service/parse_flags.h"
#include "service/server.h"
#include "service/traces.h"
#include "service/version.h"
#include "service/wire/message_limits.h"
#include "spdlog/spdlog.h"

namespace tilewire::service {
namespace {

// How long the last lines wait for a reader of standard error.
constexpr absl::Duration kLongestFlush = absl::Seconds(5);

// Exit statuses. Another try cannot help against a configuration that is wrong in itself; it can
// against a port that is in use, a network or a volume that is not there yet, or too little memory.
constexpr int kFailed = 1, kMisconfigured = 2;

int ExitStatusOf(const absl::Status& refusal) {
  const bool stays = absl::IsInvalidArgument(refusal) || absl::IsPermissionDenied(refusal);
  return stays ? kMisconfigured : kFailed;
}

int Refuse(const absl::Status& status, int exit_code) {
  if (!FlushLog(kLongestFlush)) return exit_code;
  std::fprintf(stderr, "tilewire-server: %s\n", std::string(status.message()).c_str());
  return exit_code;
}
int Refuse(const absl::Status& status) { return Refuse(status, ExitStatusOf(status)); }

// Blocks of this size and more go back to the system when they are freed. Without a bound glibc
// raises its own with each block that is freed, and keeps many large ones of different sizes.
constexpr int kReturnedBytes = 4 << 20;

// A standard descriptor that is closed becomes /dev/null: else the next that is opened would take
// its number, and what is printed and logged.
void FillStandardDescriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (syscall(SYS_fcntl, fd, F_GETFD) < 0) syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR);
  }
}
// Before the initialisers of libraries, gRPC's among them, which open some.
__attribute__((section(".preinit_array"), used)) void (*const kFirst)() = FillStandardDescriptors;

// The exit status of what only prints.
int AfterPrinting() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return 0;
  std::fprintf(stderr, "tilewire-server: standard output cannot be written to\n");
  return 1;
}

// The most that an implementation which may be used asks of the CPU; the CPU may have more.
cpu::Isa NeededIsa(cpu::Isa allowed) {
  cpu::Isa needed = cpu::Isa::kBaseline;
  for (const ImplementationRow& row : AllImplementations()) {
    if (allowed.Includes(row.isa) && row.isa.Includes(needed)) needed = row.isa;
  }
  return needed;
}

void ListImplementations(cpu::Isa allowed) {
  std::printf("this CPU: %s, allowed: %s, needed at most: %s; * marks what can be used\n",
              std::string(cpu::IsaName(cpu::BestIsa())).c_str(),
              std::string(cpu::IsaName(allowed)).c_str(),
              std::string(cpu::IsaName(NeededIsa(allowed))).c_str());
  if (const std::string refusal = cpu::TileRefusal(); !refusal.empty()) {
    std::printf("%s\n", refusal.c_str());
  }
  for (const ImplementationRow& row : AllImplementations()) {
    std::string types;
    for (DataType type : TypesOf(row)) absl::StrAppend(&types, " ", DataTypeName(type));
    std::printf("%c %-20s %-12s %-40s%s%s\n", allowed.Includes(row.isa) ? '*' : ' ',
                std::string(PrimitiveKindName(row.kind)).c_str(),
                std::string(cpu::IsaName(row.isa)).c_str(), std::string(row.name).c_str(),
                types.c_str(), row.has_cost ? ", by cost" : "");
  }
  std::printf(
      "best first, except that neighbours marked `by cost` are asked in the order of their "
      "estimated cycles; `tilewire primitive` tells which of them serves a descriptor, and why the "
      "others do not\n");
}

bool RepositoriesAreThere(const Flags& flags) {
  std::error_code error;
  const auto is_there = [&error](const std::string& folder) {
    return std::filesystem::is_directory(folder, error);
  };
  return !flags.model_repositories.empty() && absl::c_all_of(flags.model_repositories, is_there);
}

absl::StatusOr<std::vector<ServedModel>> ScanModels(const Flags& flags, const ScanScope& scope,
                                                    ScanRemarks* remarks) {
  ScanOptions options = flags.scan;
  options.scope = scope;
  options.remark = [remarks](const std::string& line) { remarks->Add(line); };
  if (!scope.folder.empty()) return ScanFolder(scope.folder, scope.model, options);
  remarks->Begin();
  if (!flags.models.empty()) return ScanNamed(flags.models, options);
  if (flags.model_repositories.empty()) return std::vector<ServedModel>();  // primitives only
  return ScanDirectories(flags.model_repositories, options);
}

// The models in the repositories. Where some may come later, that may be none.
absl::StatusOr<std::vector<ServedModel>> ScanOrEmpty(const Flags& flags, ScanRemarks* remarks) {
  absl::StatusOr<std::vector<ServedModel>> found = ScanModels(flags, {}, remarks);
  const bool is_empty = absl::IsNotFound(found.status()) && RepositoriesAreThere(flags);
  if (!is_empty || flags.control == ControlMode::kNone) return found;
  spdlog::warn("{}; models that appear there will be served{}",
               std::string(found.status().message()),
               flags.control == ControlMode::kExplicit ? " when clients ask for it" : "");
  return std::vector<ServedModel>();
}

// The models of the start. Where clients load them, the others are there to be loaded.
absl::StatusOr<std::vector<ServedModel>> ScanFirst(const Flags& flags, ScanRemarks* remarks) {
  absl::StatusOr<std::vector<ServedModel>> found = ScanOrEmpty(flags, remarks);
  if (flags.control != ControlMode::kExplicit || !found.ok()) return found;
  const auto is_named = [&flags](const std::string& name) {
    return absl::c_linear_search(flags.load_models, name);
  };
  for (const std::string& name : flags.load_models) {
    const bool is_there =
        absl::c_any_of(*found, [&name](const ServedModel& served) { return served.name == name; });
    if (name != "*" && !is_there)
      return absl::NotFoundError(absl::StrCat("--load_model=", name, ": no such model"));
  }
  for (ServedModel& served : *found) {
    if (!is_named("*") && !is_named(served.name)) served.state = ModelState::kUnloaded;
  }
  return found;
}

// Null where no files are taken.
absl::StatusOr<std::unique_ptr<UploadFolder>> OpenUploads(const Flags& flags) {
  if (flags.upload_dir.empty()) return std::unique_ptr<UploadFolder>();
  return UploadFolder::Open(flags.upload_dir, flags.max_upload_mb << 20);
}

void WriteCounts(const RequestLog& log, const StageCounts& stages) {
  std::string counts;
  for (size_t code = 0; code < kStatusCodes; ++code) {
    const auto status = static_cast<absl::StatusCode>(code);
    if (log.Requests(status) == 0) continue;
    absl::StrAppend(&counts, " ", absl::StatusCodeToString(status), " ", log.Requests(status));
  }
  spdlog::info(
      "requests so far:{}; slow {}; answers not read {}; run in stages {}, by {} plans of stages",
      counts.empty() ? " none" : counts, log.Slow(), log.Unread(), stages.runs, stages.plans);
}

// Returns when the server is to end, with the signal that said so.
int AwaitEnd(const Engine& engine, const Server& server, Loader* loader) {
  const sigset_t signals = AwaitedSignals();
  while (true) {
    int signal = 0;
    sigwait(&signals, &signal);
    switch (signal) {
      case SIGHUP:
        spdlog::info("SIGHUP: looking for models; flags are read at the start only");
        loader->Rescan();
        break;
      case SIGUSR1:
      case SIGUSR2:
        WriteCounts(server.log(), engine.stage_counts());
        break;
      case SIGALRM:
        break;
      default:
        return signal;
    }
  }
}

void Drain(const Flags& flags, const Engine& engine, Server* server, DrainSignals* signals) {
  const absl::Duration delay = absl::Seconds(flags.drain_delay);
  const RequestLog& log = server->log();
  signals->Begin(delay + flags.server.drain_timeout + absl::Seconds(10),
                 [&] { WriteCounts(log, engine.stage_counts()); });
  const int64_t before = log.Requests(absl::StatusCode::kCancelled);
  const int64_t unread_before = log.Unread();
  server->StartDrain();
  absl::SleepFor(delay);
  server->Drain();
  const int64_t cancelled = log.Requests(absl::StatusCode::kCancelled) - before;
  if (cancelled > 0) spdlog::warn("requests that were cancelled while draining: {}", cancelled);
  const int64_t unread = log.Unread() - unread_before;
  if (unread > 0) spdlog::warn("answers that were not read while draining: {}", unread);
  signals->ForgetCounts();
  spdlog::info("drained");
}

// A model whose every request is refused is better named before the first one comes.
void WarnIfBeyondMessages(const ServedModel& loaded, int64_t max_message_bytes) {
  const ModelSignature& signature = loaded.model->signature();
  const bool inputs_fit = FitMessage(signature.inputs, max_message_bytes);
  if (inputs_fit && FitMessage(signature.outputs, max_message_bytes)) return;
  spdlog::warn(
      "model '{}' version {}: the {} of a batch of 1 exceed a message of {} MB, so that every "
      "request is refused: raise --max_message_mb",
      loaded.name, loaded.version, inputs_fit ? "outputs" : "inputs", max_message_bytes >> 20);
}

void WarnAtStart(const Flags& flags, const MemoryPlan& memory) {
  if (!memory.warning.empty()) spdlog::warn(memory.warning);
  if (!flags.engine.max_isa.Includes(cpu::Isa::kAvx2)) {
    spdlog::warn("without AVX2 every primitive runs as its reference: right, but slow");
  }
  if (const std::string refusal = cpu::TileRefusal(); !refusal.empty()) spdlog::warn(refusal);
}

// Logs what serves, with which bounds, and where.
void Introduce(const EngineOptions& engine, const MemoryPlan& memory, const std::string& address) {
  spdlog::info("tilewire-server {} (build {}): {} thread{}, {}, {} MB for requests", kVersion,
               BuildId(), engine.threads, engine.threads == 1 ? "" : "s",
               std::string(cpu::IsaName(engine.max_isa)), memory.work >> 20);
  spdlog::info("{}: {} MB for connections, messages of up to {} MB", GrantedText(memory.limit),
               memory.transport >> 20, memory.message >> 20);
  std::printf("tilewire-server listening on %s\n", address.c_str());
  std::fflush(stdout);
}

int Serve(Flags flags) {
  // Debian's Abseil looks for cycles of locks at every lock, which costs small requests a twentieth
  // of their rate.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  if (const absl::Status enough = CheckDescriptors(); !enough.ok()) return Refuse(enough);
  for (const std::string& warning : flags.warnings) spdlog::warn(warning);
  ScanRemarks remarks;
  absl::StatusOr<std::vector<ServedModel>> found = ScanFirst(flags, &remarks);
  if (!found.ok()) return Refuse(found.status());
  const MemoryPlan memory = ApplyMemory(*found, &flags);
  if (!memory.refusal.empty()) return Refuse(absl::ResourceExhaustedError(memory.refusal));
  WarnAtStart(flags, memory);
  DrainSignals drain_signals;  // ends last
  absl::StatusOr<std::unique_ptr<UploadFolder>> uploads = OpenUploads(flags);
  if (!uploads.ok()) return Refuse(uploads.status());
  absl::StatusOr<std::unique_ptr<Engine>> engine = StartEngine(flags.engine, flags.pin_threads);
  if (!engine.ok()) return Refuse(engine.status());
  ModelRepository models(*std::move(found));
  Traces traces(flags, &models);  // ends after the drain
  ServerOptions options = flags.server;
  options.tracer = traces.tracer();
  options.accept_at_once = false;
  auto server = Server::Start(engine->get(), &models, options);
  if (!server.ok()) return Refuse(server.status());
  if (const absl::Status begun = traces.Begin(); !begun.ok()) return Refuse(begun);
  Introduce((*engine)->options(), memory, AddressText(flags.server.host, (*server)->port()));
  const auto monitoring = OpenMonitoringPort(flags, server->get());  // ends after the drain
  if (!monitoring.ok()) return Refuse(monitoring.status(), kMisconfigured);
  NotifySocket notify(std::getenv("NOTIFY_SOCKET"));
  const bool must_load = !flags.models.empty() && flags.control != ControlMode::kExplicit;
  FirstLoads first_loads(must_load, &models, server->get(), &notify);
  ModelMemory model_memory(engine->get(), (*server)->admission(), BoundsOfModels(memory));
  const ProcessTrial trial(
      {.engine = (*engine)->options(), .longest = absl::Seconds(flags.trial_seconds)});
  Loader loader(
      engine->get(), &models, (*server)->dispatcher(), (*server)->admission(),
      {.scan = [&](const ScanScope& scope) { return ScanModels(flags, scope, &remarks); },
       .look_every = absl::Seconds(flags.poll_seconds),
       .mode = flags.control,
       .unload_first = flags.unload_first,
       .warm_up_first = flags.warm_up_first,
       .started = [&first_loads] { first_loads.End(); },
       .changed = [&first_loads] { first_loads.Changed(); },
       .loaded =
           [&memory](const ServedModel& loaded) { WarnIfBeyondMessages(loaded, memory.message); },
       .memory = &model_memory,
       .trial = flags.trial ? &trial : nullptr,
       .uploads = uploads->get()});
  (*server)->SetModelControl(&loader);
  first_loads.LogEnd(AwaitEnd(**engine, **server, &loader));
  notify.Stopping("draining");
  loader.Stop();
  Drain(flags, **engine, server->get(), &drain_signals);
  traces.End();  // while the monitoring port tells what was lost
  return first_loads.nothing_to_serve() ? Refuse(first_loads.Reason(), kMisconfigured) : 0;
}

}  // namespace

int ServerMain(int argc, char** argv) {
  mallopt(M_MMAP_THRESHOLD, kReturnedBytes);
  SpareAddresses();
  EndPlainlyWithoutMemory();
  cpu::BestIsa();  // first, while nothing has installed a signal stack: it asks for tiles
  Flags flags;
  if (const std::optional<int> exit_code = ParseFlags(argc, argv, &flags))
    return *exit_code == 0 ? AfterPrinting() : *exit_code;
  flags.engine.diagnostics = DiagnosticsOfEnvironment().value_or(Diagnostics());
  flags.engine.diagnostics->verbose = flags.verbose;
  flags.engine.diagnostics->dump_jit = flags.dump_jit;
  setenv("GRPC_VERBOSITY", "NONE", 0);       // what matters is in the statuses
  google::protobuf::SetLogHandler(nullptr);  // a client's malformed strings fill no log
  if (flags.list_implementations) {
    ListImplementations(flags.engine.max_isa);
    return AfterPrinting();
  }
  if (flags.probe) {
    const absl::Status health = Probe(*flags.probe);
    if (!health.ok()) std::fprintf(stderr, "%s\n", std::string(health.message()).c_str());
    return health.ok() ? 0 : 1;
  }
  // Blocked before any thread starts, so that every thread inherits it and only sigwait() sees
  // them. SIGPIPE is ignored: a peer that goes away ends its connection only. So is SIGXFSZ: a log
  // that may not grow loses lines. SIGCHLD is not, whatever this process has inherited: the system
  // would keep no status of trials.
  const sigset_t signals = AwaitedSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  signal(SIGCHLD, SIG_DFL);
  SetLogForm(flags.log_form);
  StartLog(flags.log_level);
  if (flags.verbose > 0) StartVerboseLog();
  const int exit_code = Serve(std::move(flags));
  if (!FlushLog(kLongestFlush)) _exit(exit_code);
  return exit_code;
}

}  // namespace tilewire::service
