// SPDX-License-Identifier: Apache-2.0
#include "service/memory_bounds.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "service/address_space.h"
#include "service/models/file_stamp.h"

namespace tilewire::service {
namespace {

// The server's own, and those that gRPC starts for each core.
constexpr int kThreads = 24, kThreadsPerCore = 4;

MemoryNeeds NeedsOf(const EngineOptions& engine, const std::vector<ServedModel>& models) {
  MemoryNeeds needs;
  needs.used = UsedMemory();
  needs.threads =
      engine.threads + kThreads + kThreadsPerCore * static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  needs.stack_bytes = StackBytes();
  for (const ServedModel& model : models) {
    if (IsLive(model)) needs.models += BytesOfModel(SizeOf(StampOf(model)));
  }
  return needs;
}

}  // namespace

std::string GrantedText(const MemoryLimit& limit) {
  return absl::StrCat(limit.bytes >> 20, " MB granted by ", limit.name);
}

MemoryPlan ApplyMemory(const std::vector<ServedModel>& models, Flags* flags) {
  const MemoryPlan plan =
      PlanMemory(MemoryLimits(""), NeedsOf(flags->engine, models), flags->memory);
  BoundHeaps(plan.heaps);
  flags->engine.primitive_cache_bytes = plan.code;
  flags->engine.plan_bytes = std::min(flags->engine.plan_bytes, plan.code);
  flags->server.transport.max_message_bytes = plan.message;
  flags->server.transport.transport_bytes = plan.transport;
  flags->server.max_work_bytes = plan.work;
  flags->server.max_idle_answer_bytes = plan.idle_answers;
  return plan;
}

ModelMemory::Bounds BoundsOfModels(const MemoryPlan& plan) {
  return {.shared = plan.shared,
          .requests = plan.work,
          .is_fixed = plan.work_is_fixed,
          .limit = plan.limit.bytes,
          .granted = GrantedText(plan.limit),
          .held =
              [mapped = plan.limit.mapped] {
                return mapped ? UsedMemory().mapped : UsedMemory().resident;
              },
          .is_of_process = plan.limit.mapped};
}

}  // namespace tilewire::service
