// SPDX-License-Identifier: Apache-2.0
//
// Trials of what is loaded after the start, on the loader's thread.
#include "absl/cleanup/cleanup.h"
#include "engine/base/status_macros.h"
#include "service/models/loader.h"
#include "spdlog/spdlog.h"

namespace tilewire::service {

// Waits for room for a trial in another process; `memory` becomes what that may take.
absl::Status Loader::BeginTrial(const FileStamp& files, TrialMemory* memory) {
  *memory = UnboundedTrial(SizeOf(files));
  if (settings_.memory == nullptr) return absl::OkStatus();
  *memory = settings_.memory->ForTrial(*models_, SizeOf(files));
  ABSL_RETURN_IF_ERROR(settings_.memory->BeginTrial(*models_, *memory));
  return AwaitRoom();
}

absl::Status Loader::RunTrial(const FileStamp& files, const TrialMemory& memory,
                              const std::vector<Shapes>& shapes, ServedModel* found) {
  const absl::Cleanup end = [this] { EndLoad(); };
  const auto between = [this]() -> absl::Status {
    if (Stopping()) return absl::CancelledError("the server ends");
    FreeRetired();  // unloads that were asked for before do not wait for the trial
    uploads_.RemoveUnused(retired_);
    EndUnloads();
    return absl::OkStatus();
  };
  const Shapes usual = shapes.empty() ? Shapes() : shapes.front();
  ABSL_RETURN_IF_ERROR(settings_.trial->Run(usual, memory, between, found));
  if (StampOf(*found) == files) return absl::OkStatus();
  return absl::UnavailableError("its files changed while it was tried out");
}

// Whether `found` loads and runs in another process. Where there is only room for that once what it
// replaces has gone, and that may go (`unloads`, which is then reset), it goes first.
absl::Status Loader::Prove(const FileStamp& files, const std::vector<Shapes>& shapes, bool* unloads,
                           ServedModel* found) {
  if (settings_.trial == nullptr || !has_started_) return absl::OkStatus();
  TrialMemory memory;
  absl::Status room = BeginTrial(files, &memory);
  if (absl::IsResourceExhausted(room) && *unloads) {
    UnloadFirst(*found);
    *unloads = false;
    room = BeginTrial(files, &memory);
  }
  if (!room.ok()) return room;
  spdlog::info("model '{}' version {}: tried out in another process before it is loaded",
               found->name, found->version);
  return RunTrial(files, memory, shapes, found);
}

}  // namespace tilewire::service
