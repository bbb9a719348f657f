// SPDX-License-Identifier: Apache-2.0
#include "service/models/warm_up.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "service/models/niceness.h"
#include "service/models/within_memory.h"
#include "service/schedule/yield_often.h"
#include "spdlog/spdlog.h"

namespace tilewire::service {
namespace {

constexpr int64_t kMostInputBytes = int64_t{64} << 20;

// Requests come first: a run in the background takes no more of their memory than this share.
constexpr int kShareOfMemory = 4;

struct Zeros {
  std::vector<std::string> bytes;
  std::vector<InputTensor> inputs;
  bool may_be_length = false;  // the only dimension of an input: 1 may make no sense for it
};

// Zeros of these shapes; nothing where the model does not take them, or they are large.
std::optional<Zeros> ZerosOf(const ModelSignature& signature, const Shapes& shapes) {
  Zeros zeros;
  int64_t bytes = 0;
  if (shapes.size() != signature.inputs.size()) return std::nullopt;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const TensorSpec& spec = signature.inputs[i];
    const std::optional<int64_t> count = ElementCount(shapes[i]);
    if (spec.decides_shapes || !count || !spec.Allows(shapes[i])) return std::nullopt;
    bytes += *count * SizeOf(spec.type);
    if (bytes > kMostInputBytes) return std::nullopt;
    zeros.bytes.emplace_back(*count * SizeOf(spec.type), '\0');
    zeros.inputs.push_back({.dims = shapes[i]});
    zeros.may_be_length = zeros.may_be_length || (spec.dims.size() == 1 && spec.dims[0] < 0);
  }
  for (size_t i = 0; i < zeros.inputs.size(); ++i) zeros.inputs[i].pieces = {zeros.bytes[i]};
  return zeros;
}

std::optional<Zeros> ZerosFor(const ModelSignature& signature) {
  return ZerosOf(signature, BatchOfOne(signature));
}

void RunOnZeros(const ServedModel& served, const Zeros& zeros, RunOptions options) {
  options.is_counted = false;
  const absl::Status status =
      WithinMemory([&] { return served.model->Run(zeros.inputs, {}, options).status(); });
  const bool is_length = zeros.may_be_length && absl::IsInvalidArgument(status);
  if (status.ok() || is_length || absl::IsCancelled(status)) return;
  spdlog::warn("model '{}' version {}: a run on zeros failed: {}", served.name, served.version,
               status.ToString());
}

}  // namespace

Shapes BatchOfOne(const ModelSignature& signature) {
  Shapes shapes;
  for (const TensorSpec& spec : signature.inputs) {
    if (spec.any_rank) return {};
    Dims& dims = shapes.emplace_back(spec.dims);
    if (!dims.empty() && dims[0] < 0) dims[0] = 1;
  }
  return shapes;
}

bool WarmUp(const ServedModel& served, const RunOptions& options) {
  const std::optional<Zeros> zeros = ZerosFor(served.model->signature());
  if (zeros.has_value()) RunOnZeros(served, *zeros, options);
  return zeros.has_value();
}

void WarmUpOn(const ServedModel& served, const Shapes& shapes, const RunOptions& options) {
  const std::optional<Zeros> zeros = ZerosOf(served.model->signature(), shapes);
  if (zeros.has_value()) RunOnZeros(served, *zeros, options);
}

BackgroundWarmUp::BackgroundWarmUp(const ModelRepository* models, Dispatcher* dispatcher,
                                   Admission* admission)
    : models_(models),
      dispatcher_(dispatcher),
      admission_(admission),
      thread_("tw-warm-up", [this] { Body(); }) {}

BackgroundWarmUp::~BackgroundWarmUp() {
  stopping_.store(true);
  threading::MutexLock lock(&mutex_);  // the thread looks again
  waiting_.clear();
}

void BackgroundWarmUp::Add(const std::string& name, int64_t version) {
  auto served = models_->Find(name, absl::StrCat(version));
  threading::MutexLock lock(&mutex_);
  if (served.ok() && (*served)->state == ModelState::kReady) waiting_.push_back(*served);
}

void BackgroundWarmUp::Body() {
  LowerPriorityOfThisThread(getpid());
  const auto wanted = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_.load() || !waiting_.empty();
  };
  while (true) {
    ModelRepository::Served served;
    {
      threading::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&wanted));
      if (stopping_.load()) return;
      served = std::move(waiting_.front());
      waiting_.pop_front();
    }
    Run(served);
  }
}

void BackgroundWarmUp::Run(const ModelRepository::Served& served) {
  const std::optional<Zeros> zeros = ZerosFor(served->model->signature());
  if (!zeros.has_value()) return;
  const uint64_t cost_key = CostKey(*served, zeros->inputs);
  Ticket ticket(admission_);
  const YieldOften yields;
  RunOptions options{.stop = &stopping_, .serial = true};
  options.interrupted = [&] {
    yields.Pause([this] { dispatcher_->AwaitIdle(kLongestPause); });
    const auto now = models_->Find(served->name, absl::StrCat(served->version));
    const bool is_served = now.ok() && (*now)->model == served->model;
    const bool goes_on = is_served && !dispatcher_->HasRun(cost_key) && !stopping_.load();
    return goes_on ? absl::OkStatus() : absl::CancelledError("not needed");
  };
  options.reserve = [&](int64_t bytes) {
    const bool much = ticket.bytes() + bytes > admission_->max_bytes() / kShareOfMemory;
    const bool charged = !much && ticket.ChargeRun(bytes, "a run on zeros").ok();
    return charged ? absl::OkStatus() : absl::CancelledError("requests need the memory");
  };
  if (options.interrupted().ok()) RunOnZeros(*served, *zeros, options);
}

}  // namespace tilewire::service
