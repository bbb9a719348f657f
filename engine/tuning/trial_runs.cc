// SPDX-License-Identifier: Apache-2.0
#include "engine/tuning/trial_runs.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/file/new_file.h"
#include "engine/tuning/time_plan.h"

namespace tilewire::tuning {
namespace {

const absl::Duration kLeastTime = absl::Milliseconds(100), kInCache = absl::Milliseconds(1);
constexpr int kMostTurns = 1000;

absl::Duration TimeBy(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return absl::DurationFromTimespec(time);
}

OutputFloats FloatsOf(const OutputTensor& output) {
  OutputFloats floats{.dims = output.dims};
  floats.elements.resize(output.bytes.size() / sizeof(float));
  memcpy(floats.elements.data(), output.bytes.data(), floats.elements.size() * sizeof(float));
  return floats;
}

}  // namespace

absl::Duration MedianOf(std::vector<absl::Duration> times) {
  const auto middle = times.begin() + static_cast<int64_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

absl::StatusOr<std::unique_ptr<TrialRuns>> TrialRuns::Create(Engine* engine, const ExampleSet* set,
                                                             const std::string& parent,
                                                             const std::atomic<bool>* stop,
                                                             absl::Duration most_of_turns) {
  std::error_code error;
  const std::string base =
      parent.empty() ? std::filesystem::temp_directory_path(error).string() : parent;
  std::string folder = absl::StrCat(base, "/tilewire-tune-XXXXXX");
  if (error || mkdtemp(folder.data()) == nullptr) {
    return InvalidArgument("no folder for files that are tried can be made in '", base,
                           "': ", strerror(error ? error.value() : errno));
  }
  return std::unique_ptr<TrialRuns>(
      new TrialRuns(engine, set, std::move(folder), stop, most_of_turns));
}

TrialRuns::~TrialRuns() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

absl::StatusOr<std::shared_ptr<const Model>> TrialRuns::Load(
    const std::string& bytes, const std::map<std::string, Precision>& precisions,
    const std::map<std::string, std::string>& rows, bool tries_rows) const {
  const std::string path = absl::StrCat(folder_, "/trial.onnx");
  ABSL_ASSIGN_OR_RETURN(reader::NewFile file, reader::NewFile::Create(path));
  ABSL_RETURN_IF_ERROR(file.Append(bytes.data(), static_cast<int64_t>(bytes.size())));
  ABSL_RETURN_IF_ERROR(file.Publish(/*replaces=*/true));
  auto model = engine_->LoadModel(path, {.node_precisions = precisions,
                                         .node_rows = rows,
                                         .tries_rows = tries_rows,
                                         .takes_tuning = false});
  // The model keeps the file open: only an empty folder is left of a process that is killed later.
  unlink(path.c_str());
  return model;
}

RunOptions TrialRuns::Options() const {
  RunOptions options;
  options.stop = stop_;
  options.interrupted = [stop = stop_] {
    return stop != nullptr && *stop ? absl::CancelledError("tuning was stopped") : absl::OkStatus();
  };
  return options;
}

absl::StatusOr<TrialOutputs> TrialRuns::Run(const Model& model, absl::Span<const int64_t> examples,
                                            int output,
                                            const std::function<void(int64_t)>& seen) const {
  TrialOutputs trial;
  const OutputRequest request{.index = output};
  for (int64_t example : examples) {
    ABSL_ASSIGN_OR_RETURN(const std::vector<OutputTensor> outputs,
                          model.Run(set_->inputs[example], {request}, Options()));
    trial.outputs.push_back(FloatsOf(outputs[0]));
    if (seen) seen(static_cast<int64_t>(trial.outputs.size()));
  }
  return trial;
}

absl::Status TrialRuns::RunAll(const Model& model, int64_t example,
                               const std::function<absl::Status(const OutputTensor&)>& take) const {
  ABSL_ASSIGN_OR_RETURN(const std::vector<OutputTensor> outputs,
                        model.Run(set_->inputs[example], {}, Options()));
  for (const OutputTensor& output : outputs) ABSL_RETURN_IF_ERROR(take(output));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<absl::Duration>> TrialRuns::TimeInTurns(
    absl::Span<const Model* const> models, absl::Duration least) const {
  std::vector<std::vector<absl::Duration>> times(models.size());
  const std::vector<InputTensor>& inputs = set_->inputs[set_->chosen.front()];
  // One thread computes: the time that it had a core for, which a busy machine makes longer by far
  // less than what passes meanwhile.
  const EngineOptions& options = engine_->options();
  const bool is_alone = std::min(options.threads, options.threads_per_request) == 1;
  const clockid_t clock = is_alone ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
  const auto run = [&](const Model& model) -> absl::StatusOr<absl::Duration> {
    const absl::Duration start = TimeBy(clock);
    ABSL_RETURN_IF_ERROR(model.Run(inputs, {}, {}).status());
    return TimeBy(clock) - start;
  };
  // The first turn makes plans, and is not counted. Turns of a small model are more, as other work
  // on the machine takes a core for longer than some of them.
  const absl::Time start = absl::Now(), end = start + most_of_turns_;
  const auto is_wanted = [&](int turn) {
    if (turn <= TimePlan::kLeastTurns) return true;
    const absl::Time now = absl::Now();
    const bool is_more = turn <= TimePlan::kTurns || (turn < kMostTurns && now - start < least);
    return is_more && now < end;
  };
  for (int turn = 0; is_wanted(turn); ++turn) {
    for (size_t i = 0; i < models.size(); ++i) {
      ABSL_ASSIGN_OR_RETURN(absl::Duration time, run(*models[i]));
      // The other models have put out of the core's own cache what fits it.
      if (time < kInCache) {
        ABSL_ASSIGN_OR_RETURN(time, run(*models[i]));
      }
      if (turn > 0) times[i].push_back(time);
    }
  }
  std::vector<absl::Duration> medians;
  for (std::vector<absl::Duration>& of_one : times) medians.push_back(MedianOf(std::move(of_one)));
  return medians;
}

absl::Status TrialRuns::TimeInTurns(const Model& a, const Model& b, absl::Duration* of_a,
                                    absl::Duration* of_b) const {
  ABSL_ASSIGN_OR_RETURN(const std::vector<absl::Duration> times, TimeInTurns({&a, &b}, kLeastTime));
  *of_a = times[0];
  *of_b = times[1];
  return absl::OkStatus();
}

std::vector<Dims> TrialRuns::FirstDims() const {
  std::vector<Dims> dims;
  for (const InputTensor& input : set_->inputs[set_->chosen.front()]) dims.push_back(input.dims);
  return dims;
}

}  // namespace tilewire::tuning
