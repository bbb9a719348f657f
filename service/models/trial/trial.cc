// SPDX-License-Identifier: Apache-2.0
#include "service/models/trial/trial.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/base/status_macros.h"
#include "engine/base/utf8.h"
#include "protos/trial.pb.h"
#include "service/models/model_config.h"
#include "service/models/repository_scan.h"
#include "service/models/trial/child_process.h"
#include "service/models/trial/trial_frames.h"
#include "service/models/trial/trial_process.h"
#include "service/observe/steady_time.h"
#include "spdlog/spdlog.h"

namespace tilewire::service {
namespace {

using tilewire::trial::TrialReport;
using tilewire::trial::TrialRequest;

constexpr absl::Duration kPoll = absl::Milliseconds(20);
constexpr size_t kLongestText = 2000;  // of what the process says

void DescribeEngine(const EngineOptions& engine, TrialRequest* request) {
  for (std::string& name : cpu::FeatureNames(engine.max_isa)) request->add_isas(std::move(name));
  request->set_convolution_algorithm(static_cast<int>(engine.convolution_algorithm));
  request->set_precision(static_cast<int>(engine.precision));
  request->set_plan_bytes(engine.plan_bytes);
  request->set_primitive_cache_bytes(engine.primitive_cache_bytes);
}

TrialRequest RequestFor(const ServedModel& found, const std::vector<Dims>& shapes,
                        const TrialMemory& memory) {
  TrialRequest request;
  request.set_parent(getpid());
  request.set_name(found.name);
  request.set_version(found.version);
  request.set_path(found.path);
  request.set_folder(found.folder);
  request.set_settings_folder(found.settings_folder);
  request.set_default_file(found.default_file);
  request.set_config_path(found.config_path);
  request.set_strict_config(found.strict_config);
  request.set_named_by_flag(found.named_by == NamedBy::kFlag);
  if (found.given_config != nullptr)
    request.set_given_config(found.given_config->SerializeAsString());
  request.set_memory_bytes(memory.load_bytes + memory.load_bytes / 8 + memory.run_bytes);
  request.set_run_bytes(memory.run_bytes);
  for (const Dims& dims : shapes) {
    TrialRequest::Dims* added = request.add_shapes();
    for (int64_t size : dims) added->add_dims(size);
  }
  return request;
}

// A process that a model has broken may say anything.
std::string Sanitized(const std::string& text) { return Utf8Text(text.substr(0, kLongestText)); }

// How the process ended, and all that it said.
struct Outcome {
  std::string reached = "its start";
  std::optional<TrialReport> end;
  int64_t left_out_bytes = 0;  // of a run that did not take place; 0: there was none
  bool has_nonsense = false;
  int wait_status = 0;
};

// Takes the whole messages at the front of `bytes`.
void TakeReports(std::string* bytes, Outcome* outcome) {
  absl::string_view left = *bytes;
  while (left.size() >= kFrameHead && !outcome->has_nonsense) {
    const uint32_t size = FrameSize(left);
    outcome->has_nonsense = size > kLargestFrame;
    if (outcome->has_nonsense || left.size() - kFrameHead < size) break;
    TrialReport report;
    outcome->has_nonsense = !report.ParseFromArray(left.data() + kFrameHead, size);
    left.remove_prefix(kFrameHead + size);
    if (!report.reached().empty()) outcome->reached = Sanitized(report.reached());
    if (report.left_out_bytes() > 0) outcome->left_out_bytes = report.left_out_bytes();
    if (report.has_ended()) outcome->end = std::move(report);
  }
  // After nonsense no more is kept: a broken process may write without end.
  bytes->erase(0, outcome->has_nonsense ? bytes->size() : bytes->size() - left.size());
}

// Follows the process to its end.
absl::Status Follow(absl::Time deadline, absl::FunctionRef<absl::Status()> between,
                    ChildProcess* child, Outcome* outcome) {
  std::string bytes;
  bool writes = true;
  while (true) {
    const absl::Time now = SteadyNow();
    if (writes) {
      writes = child->Read(kPoll, &bytes);
      TakeReports(&bytes, outcome);
    }
    if (!writes) {
      if (const std::optional<int> ended = child->PollEnd()) {
        outcome->wait_status = *ended;
        return absl::OkStatus();
      }
      absl::SleepFor(absl::Milliseconds(1));
    }
    ABSL_RETURN_IF_ERROR(between());
    if (now > deadline) return absl::DeadlineExceededError("");
  }
}

std::string MemoryText(const TrialMemory& memory) {
  return absl::StrCat("; a trial of its files may take ",
                      (memory.load_bytes + memory.run_bytes) >> 20, " MB");
}

// The end as the process told it.
absl::Status Verdict(const TrialReport& end, const TrialMemory& memory) {
  const std::string text = Sanitized(end.message());
  switch (const auto code = static_cast<absl::StatusCode>(end.code())) {
    case absl::StatusCode::kOk:
      return absl::OkStatus();
    case absl::StatusCode::kResourceExhausted:
      return absl::ResourceExhaustedError(absl::StrCat(text, MemoryText(memory)));
    case absl::StatusCode::kUnavailable:  // these would say that it will be tried again by itself
    case absl::StatusCode::kCancelled:
      return absl::FailedPreconditionError(text);
    default:
      return absl::Status(code, text);
  }
}

absl::Status Judged(const Outcome& outcome, const TrialMemory& memory) {
  const int status = outcome.wait_status;
  const std::string at = absl::StrCat(", at: ", outcome.reached);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "its trial was killed (SIGKILL), as the system does where memory is short", at));
  }
  if (WIFSIGNALED(status)) {
    const char* name = sigabbrev_np(WTERMSIG(status));
    return absl::InternalError(absl::StrCat("its trial died of SIG", name != nullptr ? name : "?",
                                            " (", strsignal(WTERMSIG(status)), ")", at));
  }
  if (outcome.end.has_value() && !outcome.has_nonsense) return Verdict(*outcome.end, memory);
  return absl::InternalError(
      absl::StrCat("its trial ended with exit status ", WEXITSTATUS(status), " and no result", at));
}

// The file that was read, which the model's settings may name.
void SetFile(const Outcome& outcome, ServedModel* found) {
  const std::string file = outcome.end.has_value() ? outcome.end->file() : "";
  if (file.empty() || found->folder.empty() || !IsFileName(file)) return;
  found->path = OnnxFileAt((std::filesystem::path(found->folder) / file).string());
}

}  // namespace

absl::Status ProcessTrial::Run(const std::vector<Dims>& shapes, const TrialMemory& memory,
                               absl::FunctionRef<absl::Status()> between,
                               ServedModel* found) const {
  absl::StatusOr<ChildProcess> child = ChildProcess::Start(settings_.program, kTrialArgument);
  if (!child.ok()) {
    spdlog::warn("model '{}' version {}: loaded without a trial: {}", found->name, found->version,
                 std::string(child.status().message()));
    return absl::OkStatus();
  }
  TrialRequest request = RequestFor(*found, shapes, memory);
  DescribeEngine(settings_.engine, &request);
  child->Write(Framed(request.SerializeAsString()));  // where it does not read, how it ends tells
  Outcome outcome;
  const absl::Status followed = Follow(SteadyNow() + settings_.longest, between, &*child, &outcome);
  if (absl::IsDeadlineExceeded(followed)) {
    return absl::DeadlineExceededError(absl::StrCat("its trial did not end within ",
                                                    absl::FormatDuration(settings_.longest),
                                                    " (--trial_seconds), at: ", outcome.reached));
  }
  ABSL_RETURN_IF_ERROR(followed);
  if (outcome.left_out_bytes > 0) {
    spdlog::info(
        "model '{}' version {}: its trial left out a run, which takes {} bytes where it may take "
        "{}",
        found->name, found->version, outcome.left_out_bytes, memory.run_bytes);
  }
  SetFile(outcome, found);
  return Judged(outcome, memory);
}

}  // namespace tilewire::service
