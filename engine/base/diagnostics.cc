// SPDX-License-Identifier: Apache-2.0
#include "engine/base/diagnostics.h"

#include <atomic>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "engine/base/status_macros.h"

namespace tilewire {
namespace {

std::atomic<const Diagnostics*>& ActiveSlot() {
  static std::atomic<const Diagnostics*> active = nullptr;
  return active;
}

absl::string_view Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

absl::StatusOr<int> ParseVerboseLevel(absl::string_view text) {
  int level = 0;
  if (text.empty() || (absl::SimpleAtoi(text, &level) && level >= 0 && level <= 2)) return level;
  return InvalidArgument("TILEWIRE_VERBOSE: '", text, "' is none of 0, 1, 2");
}

absl::StatusOr<Diagnostics> DiagnosticsOfEnvironment() {
  const absl::StatusOr<int> verbose = ParseVerboseLevel(Environment("TILEWIRE_VERBOSE"));
  if (!verbose.ok()) return verbose.status();
  return Diagnostics{.verbose = *verbose,
                     .dump_jit = std::string(Environment("TILEWIRE_DUMP_JIT")),
                     .perf_map = Environment("TILEWIRE_PERF_MAP") == "1"};
}

const Diagnostics& ActiveDiagnostics() {
  if (const Diagnostics* active = ActiveSlot().load(std::memory_order_acquire)) return *active;
  static const Diagnostics of_environment = DiagnosticsOfEnvironment().value_or(Diagnostics());
  return of_environment;
}

void SetDiagnostics(const Diagnostics& diagnostics) {
  if (diagnostics == ActiveDiagnostics()) return;
  // Never freed: readers hold no lock. A process sets them once or twice.
  ActiveSlot().store(new Diagnostics(diagnostics), std::memory_order_release);
}

}  // namespace tilewire
