// SPDX-License-Identifier: Apache-2.0
#include "service/models/trial/trial_process.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <exception>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/base/check.h"
#include "engine/base/progress.h"
#include "engine/base/status_macros.h"
#include "engine/engine.h"
#include "service/models/configured_warm_up.h"
#include "service/models/model_load.h"
#include "service/models/niceness.h"
#include "service/models/trial/trial_frames.h"
#include "service/models/warm_up.h"
#include "service/models/within_memory.h"
#include "service/schedule/yield_often.h"
#include "spdlog/spdlog.h"

namespace tilewire::service {
namespace {

// The stacks of the engine's own threads, and what is mapped and not used.
constexpr int64_t kSlackBytes = int64_t{48} << 20;
constexpr int kHeaps = 1;
constexpr size_t kLongestName = 200;

int report_socket = -1;

void Send(const trial::TrialReport& report) {
  SendAll(report_socket, Framed(report.SerializeAsString()));
}

void ReportReached(absl::string_view doing, absl::string_view what) {
  trial::TrialReport report;
  report.set_reached(what.empty() ? std::string(doing)
                                  : absl::StrCat(doing, " '", what.substr(0, kLongestName), "'"));
  Send(report);
}

void ReportEnd(const absl::Status& status, const std::string& path) {
  trial::TrialReport report;
  report.set_has_ended(true);
  report.set_code(static_cast<int>(status.code()));
  report.set_message(std::string(status.message()));
  if (!path.empty()) report.set_file(std::filesystem::path(path).filename().string());
  Send(report);
}

void ReportLeftOut(int64_t bytes) {
  trial::TrialReport report;
  report.set_left_out_bytes(bytes);
  Send(report);
}

void SetLimit(decltype(RLIMIT_DATA) resource, int64_t bytes) {
  rlimit limit;
  if (getrlimit(resource, &limit) != 0) return;
  limit.rlim_cur = std::min(limit.rlim_max, static_cast<rlim_t>(bytes));
  setrlimit(resource, &limit);
}

// An exception that nothing has caught: for want of memory, or a programmer's error.
[[noreturn]] void OnTerminate() {
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    SetLimit(RLIMIT_DATA, std::numeric_limits<int64_t>::max());
    ReportEnd(absl::ResourceExhaustedError("the system has no memory for it"), "");
    _exit(1);
  } catch (...) {
  }
  std::abort();
}

bool Receive(size_t size, std::string* bytes) {
  bytes->resize(size);
  for (size_t at = 0; at < size;) {
    const ssize_t received = recv(report_socket, bytes->data() + at, size - at, 0);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) return false;
    at += received;
  }
  return true;
}

// Standard input and output become /dev/null, so that nothing is printed into the reports.
bool TakeSocket() {
  report_socket = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (report_socket < 0 || null < 0) return false;
  dup2(null, STDIN_FILENO);
  dup2(null, STDOUT_FILENO);
  close(null);
  return true;
}

// The bytes of private memory that this process has mapped by now; 0 if the system does not say.
int64_t DataBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    absl::string_view value = line;
    int64_t kilobytes = 0;
    if (absl::ConsumePrefix(&value, "VmData:") && absl::ConsumeSuffix(&value, "kB") &&
        absl::SimpleAtoi(value, &kilobytes))
      return kilobytes << 10;
  }
  return 0;
}

// Where memory is short, this process is the first that the system ends.
void OfferToBeEnded() { std::ofstream("/proc/self/oom_score_adj") << 1000; }

cpu::Isa AllowedBy(const trial::TrialRequest& request) {
  cpu::Isa allowed;
  for (const std::string& name : request.isas()) {
    if (const auto isa = cpu::ParseIsa(name); isa.ok()) allowed = allowed | *isa;
  }
  return allowed & cpu::BestIsa();
}

EngineOptions OptionsFor(const trial::TrialRequest& request) {
  EngineOptions options;
  options.max_isa = AllowedBy(request);
  options.threads = options.threads_per_request = 1;
  options.primitive_cache_bytes = request.primitive_cache_bytes();
  options.plan_bytes = request.plan_bytes();
  options.convolution_algorithm =
      static_cast<ConvolutionAlgorithm>(request.convolution_algorithm());
  options.precision = static_cast<Precision>(request.precision());
  options.diagnostics = Diagnostics();
  return options;
}

absl::StatusOr<ServedModel> ModelOf(const trial::TrialRequest& request) {
  ServedModel model;
  model.name = request.name();
  model.version = request.version();
  model.path = request.path();
  model.folder = request.folder();
  model.settings_folder = request.settings_folder();
  model.default_file = request.default_file();
  model.config_path = request.config_path();
  model.strict_config = request.strict_config();
  if (request.named_by_flag()) model.named_by = NamedBy::kFlag;
  if (!request.has_given_config()) return model;
  auto config = std::make_shared<inference::ModelConfig>();
  if (!config->ParseFromString(request.given_config()))
    return absl::InternalError("a trial's settings cannot be read");
  model.given_config = std::move(config);
  return model;
}

Shapes ShapesOf(const trial::TrialRequest& request) {
  Shapes shapes;
  for (const trial::TrialRequest::Dims& one : request.shapes())
    shapes.emplace_back(one.dims().begin(), one.dims().end());
  return shapes;
}

// One run on zeros or, if its settings name some, on those of its settings.
absl::Status RunOnce(const trial::TrialRequest& request, const ServedModel& model) {
  RunOptions run{.serial = true};
  run.reserve = [&request](int64_t bytes) {
    if (bytes <= request.run_bytes()) return absl::OkStatus();
    ReportLeftOut(bytes);
    return absl::CancelledError("too large for a trial");
  };
  const absl::Status configured = RunConfiguredWarmUp(model, run);
  if (!configured.ok() && !absl::IsCancelled(configured)) return configured;
  if (model.config->model_warmup_size() > 0) return absl::OkStatus();
  if (!WarmUp(model, run)) WarmUpOn(model, ShapesOf(request), run);
  return absl::OkStatus();
}

absl::Status TryOut(const trial::TrialRequest& request, ServedModel* model) {
  ABSL_ASSIGN_OR_RETURN(*model, ModelOf(request));
  ABSL_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, Engine::Create(OptionsFor(request)));
  ABSL_RETURN_IF_ERROR(ReadVersion(engine.get(), {.serial = true}, model));
  return RunOnce(request, *model);
}

}  // namespace

bool TrialProcess::Begin() {
  TILEWIRE_CHECK(report_socket < 0, "a process is one trial at most");
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  mallopt(M_ARENA_MAX, kHeaps);
  SetLimit(RLIMIT_CORE, 0);
  LowerPriorityOfThisThread(getppid());
  OfferToBeEnded();
  spdlog::set_level(spdlog::level::off);
  std::string bytes;
  if (!TakeSocket() || !Receive(kFrameHead, &bytes)) return false;
  const uint32_t size = FrameSize(bytes);
  if (size > kLargestFrame || !Receive(size, &bytes)) return false;
  if (!request_.ParseFromString(bytes) || getppid() != request_.parent()) return false;
  SetLimit(RLIMIT_DATA, DataBytes() + kSlackBytes + request_.memory_bytes());
  std::set_terminate(OnTerminate);
  WatchProgress(ReportReached);
  return true;
}

void TrialProcess::Try() {
  const YieldOften yields;
  ServedModel model;
  const absl::Status status = WithinMemory([&] { return TryOut(request_, &model); });
  WatchProgress(nullptr);
  ReportEnd(status, model.path);
  _exit(0);  // what the model has broken must not be met again
}

}  // namespace tilewire::service
