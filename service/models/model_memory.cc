// SPDX-License-Identifier: Apache-2.0
#include "service/models/model_memory.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "spdlog/spdlog.h"

namespace tilewire::service {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// The network, the plan and the code of a model, beyond its weights.
constexpr int64_t kBesideWeights = 4 * kMiB;
// Requests get this much however much models hold: a small one is answered.
constexpr int64_t kLeastForRequests = 4 * kMiB;
// A trial's process, without its model.
constexpr int64_t kOfATrial = 32 * kMiB;
// For the tensors of its run, without taking from requests: at most, and whatever they leave.
constexpr int64_t kMostForARun = 256 * kMiB, kLeastForARun = 16 * kMiB;
// A change that is worth a line in the log.
constexpr int64_t kWorthALine = 1 * kMiB;

// The least that a load leaves requests of their bound.
int64_t KeptBesideALoad(int64_t bound) {
  return std::min(bound, std::max(bound / 4, kLeastForRequests));
}

}  // namespace

// Measured over networks with f32 weights of 47 to 553 MB: a model holds 1.17 to 1.3 times its
// file, its load takes 1.5 to 1.9 times.
int64_t BytesOfModel(int64_t file_bytes) { return file_bytes + file_bytes / 4 + kBesideWeights; }
int64_t BytesOfLoad(int64_t file_bytes) { return file_bytes + file_bytes / 4 * 3 + kBesideWeights; }

TrialMemory UnboundedTrial(int64_t file_bytes) {
  return {.load_bytes = BytesOfLoad(file_bytes), .run_bytes = kMostForARun};
}

ModelMemory::ModelMemory(Engine* engine, Admission* admission, Bounds bounds)
    : engine_(engine),
      admission_(admission),
      bounds_(std::move(bounds)),
      logged_(admission->max_bytes()) {
  engine_->BoundPooledMemory(admission->max_bytes());
}

int64_t ModelMemory::HeldBy(const ModelRepository& models) {
  int64_t bytes = 0;
  for (const ModelRepository::Served& served : models.All()) {
    const int64_t held = served->model != nullptr ? served->model->HeldBytes() : 0;
    if (served->statistics != nullptr) served->statistics->SetHeldBytes(held);
    if (served->model != nullptr) bytes += held + kBesideWeights;
  }
  return bytes;
}

absl::Status ModelMemory::BeginLoad(const ModelRepository& models, int64_t bytes) {
  return Begin(models, "loading it", bytes);
}

TrialMemory ModelMemory::ForTrial(const ModelRepository& models, int64_t file_bytes) const {
  TrialMemory memory = UnboundedTrial(file_bytes);
  const int64_t left = bounds_.shared - HeldBy(models) - admission_->max_bytes();
  memory.run_bytes =
      std::clamp(left - memory.load_bytes - kOfATrial, kLeastForARun, memory.run_bytes);
  return memory;
}

absl::Status ModelMemory::BeginTrial(const ModelRepository& models, const TrialMemory& memory) {
  if (bounds_.is_of_process) return absl::OkStatus();
  return Begin(models, "trying it out", memory.load_bytes + memory.run_bytes + kOfATrial);
}

absl::Status ModelMemory::Begin(const ModelRepository& models, absl::string_view what,
                                int64_t bytes) {
  const int64_t most = std::min(admission_->max_bytes(), bounds_.requests);
  const int64_t kept = KeptBesideALoad(most);
  const int64_t missing = bytes + most - (bounds_.shared - HeldBy(models));
  wanted_ = std::clamp<int64_t>(missing, 0, std::min(bytes, most - kept));
  // Requests may come to hold this beside a load that takes more than there is to share.
  const int64_t beside =
      missing > most - kept ? std::max<int64_t>(0, kept - admission_->HeldByRequests()) : 0;
  const int64_t needed = bytes + beside;
  if (bounds_.held() + needed > bounds_.limit) engine_->FreeIdleMemory(absl::ZeroDuration());
  const int64_t held = bounds_.held();
  if (held + needed <= bounds_.limit) return absl::OkStatus();
  wanted_ = 0;
  const std::string keep =
      beside > 0 ? absl::StrCat("; requests keep another ", beside / kMiB, " MB") : "";
  return absl::ResourceExhaustedError(absl::StrCat(what, " takes about ", bytes / kMiB,
                                                   " MB, and the server holds ", held / kMiB,
                                                   " MB of ", bounds_.granted, keep));
}

bool ModelMemory::TakeRoom() {
  if (wanted_ > 0 && !admission_->Lend(wanted_)) return false;
  lent_ += std::exchange(wanted_, 0);
  return true;
}

absl::Status ModelMemory::CheckLoad() const {
  const int64_t held = bounds_.held();
  if (held <= bounds_.limit / 16 * 15) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("loading it takes too much: the server holds ",
                                                   held / kMiB, " MB of ", bounds_.granted));
}

void ModelMemory::EndLoad() {
  wanted_ = 0;
  admission_->TakeBack(std::exchange(lent_, 0));
}

void ModelMemory::Update(const ModelRepository& models) {
  const int64_t held = HeldBy(models);
  if (bounds_.is_fixed) return;
  const int64_t left = std::max(bounds_.shared - held, kLeastForRequests);
  const int64_t bytes = std::min(bounds_.requests, left);
  admission_->SetMaxBytes(bytes);
  engine_->BoundPooledMemory(bytes);
  if (std::abs(bytes - logged_) < kWorthALine) return;
  logged_ = bytes;
  spdlog::info("{} MB for requests: models hold {} MB of {}", bytes / kMiB, held / kMiB,
               bounds_.granted);
}

}  // namespace tilewire::service
