// SPDX-License-Identifier: Apache-2.0
#include "service/memory_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tilewire::service {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// Libraries, tables and buffers of a server that has started, beyond what it holds before.
constexpr int64_t kStarted = 16 * kMiB;
// Defaults where memory is plentiful, and the least of them.
constexpr int64_t kMostMessage = 64 * kMiB, kLeastMessage = 1 * kMiB;
constexpr int64_t kMostTransport = 512 * kMiB, kLeastTransport = 16 * kMiB;
constexpr int64_t kMostCode = 64 * kMiB;
constexpr int64_t kMostIdleAnswers = 256 * kMiB;
constexpr int64_t kMostReserve = 256 * kMiB, kLeastReserve = 8 * kMiB;
// With less the server would refuse nearly everything: it does not start.
constexpr int64_t kLeastShared = 8 * kMiB;
// A heap for each such part: with 16 heaps, uploads of 38 MB after ones of 6 exceeded 512 MB.
constexpr int64_t kGrantedPerHeap = 512 * kMiB;

// gRPC notices only afterwards that its quota is exceeded. Measured with 10 to 100 uploads at once,
// for quotas of 32 to 256 MB: up to a fifth more, and 24 MB.
constexpr int64_t kBeyondQuota = 24 * kMiB;
int64_t HeldFor(int64_t quota) { return quota + quota / 5 + kBeyondQuota; }
int64_t QuotaOf(int64_t held) { return (held - kBeyondQuota) / 6 * 5; }

int64_t Megabytes(int64_t bytes) { return bytes / kMiB; }

// The rest of a limit once the server has started.
int64_t LeftOf(const MemoryLimit& limit, const MemoryNeeds& needs) {
  const int64_t held =
      limit.mapped ? needs.used.mapped + needs.threads * needs.stack_bytes : needs.used.resident;
  return limit.bytes - held - kStarted;
}

MemoryPlan PlanWithin(const MemoryLimit& limit, const MemoryNeeds& needs,
                      const MemoryWishes& wishes) {
  MemoryPlan plan;
  plan.limit = limit;
  const int64_t granted = limit.bytes;
  plan.code = wishes.code.value_or(std::min(granted / 16, kMostCode));
  plan.idle_answers = std::min(granted / 32, kMostIdleAnswers);
  // Memory that is freed between other blocks stays mapped.
  const int64_t share = limit.mapped ? granted / 8 : granted / 16;
  const int64_t reserve = std::clamp(share, kLeastReserve, kMostReserve);
  const int64_t left = LeftOf(limit, needs) - reserve - plan.code - plan.idle_answers;
  const int64_t quota = QuotaOf(std::min((left - needs.models) / 3, granted / 4));
  plan.transport = wishes.transport.value_or(
      std::max(std::clamp(quota, kLeastTransport, kMostTransport), 2 * wishes.message.value_or(0)));
  plan.message =
      wishes.message.value_or(std::clamp(plan.transport / 2, kLeastMessage, kMostMessage));
  plan.shared = std::max<int64_t>(0, left - HeldFor(plan.transport));
  plan.work_is_fixed = wishes.work.has_value();
  plan.work = wishes.work.value_or(std::min(granted / 2, plan.shared));
  plan.heaps = static_cast<int>(std::clamp<int64_t>(granted / kGrantedPerHeap, 1, 1 << 20));
  return plan;
}

std::string GrantText(const MemoryPlan& plan) {
  return absl::StrCat(Megabytes(plan.limit.bytes), " MB that ", plan.limit.name, " grants");
}

// The smallest limit with which the server would start.
int64_t LeastGrant(MemoryLimit limit, const MemoryNeeds& needs, const MemoryWishes& wishes) {
  limit.bytes = Megabytes(limit.bytes) * kMiB;
  while (PlanWithin(limit, needs, wishes).shared < kLeastShared) limit.bytes += kMiB;
  return limit.bytes;
}

std::string Refusal(const MemoryPlan& plan, const MemoryNeeds& needs, const MemoryWishes& wishes) {
  if (plan.shared >= kLeastShared) return "";
  return absl::StrCat("the ", GrantText(plan),
                      " hold the server and its connections (--transport_mb=",
                      Megabytes(plan.transport), ") but no model: at least ",
                      Megabytes(LeastGrant(plan.limit, needs, wishes)), " MB are needed");
}

std::string Warning(const MemoryPlan& plan) {
  if (plan.work <= plan.shared) return "";
  return absl::StrCat("--max_work_mb=", Megabytes(plan.work),
                      " and --transport_mb=", Megabytes(plan.transport), " together exceed the ",
                      GrantText(plan),
                      ": the system may end the server; without --max_work_mb it would be ",
                      Megabytes(std::min(plan.limit.bytes / 2, plan.shared)));
}

}  // namespace

MemoryPlan PlanMemory(const std::vector<MemoryLimit>& limits, const MemoryNeeds& needs,
                      const MemoryWishes& wishes) {
  const MemoryLimit& tightest = *std::min_element(
      limits.begin(), limits.end(), [&needs](const MemoryLimit& a, const MemoryLimit& b) {
        return LeftOf(a, needs) < LeftOf(b, needs);
      });
  MemoryPlan plan = PlanWithin(tightest, needs, wishes);
  plan.refusal = Refusal(plan, needs, wishes);
  plan.warning = Warning(plan);
  return plan;
}

}  // namespace tilewire::service
