// SPDX-License-Identifier: Apache-2.0
//
// Settings for what this process writes about its own work: lines about primitives, generated code,
// symbols for perf. One setting for the whole process, because perf maps and standard error belong
// to it. Thread-safe.
#ifndef ENGINE_BASE_DIAGNOSTICS_H_
#define ENGINE_BASE_DIAGNOSTICS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tilewire {

struct Diagnostics {
  int verbose = 0;        // 1: a line per execution of a primitive; 2: also per creation
  std::string dump_jit;   // the folder that each generated kernel is written to; empty: none
  bool perf_map = false;  // whether generated kernels are named in /tmp/perf-<pid>.map

  bool operator==(const Diagnostics&) const = default;
};

// The level that a text asks for; an empty text is 0.
//   kInvalidArgument  anything but 0, 1, 2; the message names them
absl::StatusOr<int> ParseVerboseLevel(absl::string_view text);

// TILEWIRE_VERBOSE, TILEWIRE_DUMP_JIT and TILEWIRE_PERF_MAP=1. Errors are ParseVerboseLevel()'s.
absl::StatusOr<Diagnostics> DiagnosticsOfEnvironment();

// The diagnostics in force: those that were set last; until then the environment's as of the first
// call, or none if the environment's are not valid. The reference stays valid.
const Diagnostics& ActiveDiagnostics();
void SetDiagnostics(const Diagnostics& diagnostics);

}  // namespace tilewire

#endif  // ENGINE_BASE_DIAGNOSTICS_H_
