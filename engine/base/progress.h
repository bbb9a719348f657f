// SPDX-License-Identifier: Apache-2.0
//
// The step that a load or a run has begun, told to a watcher. A process that tries a model out for
// another one passes it on, so that it is known how far a model came that ended the process.
// Without a watcher a report costs a load and a branch. Thread-safe.
#ifndef ENGINE_BASE_PROGRESS_H_
#define ENGINE_BASE_PROGRESS_H_

#include <atomic>

#include "absl/strings/string_view.h"

namespace tilewire {

// "planning node", "conv1". Called by any thread.
using ProgressWatcher = void (*)(absl::string_view doing, absl::string_view what);

inline std::atomic<ProgressWatcher>& ActiveProgressWatcher() {
  static std::atomic<ProgressWatcher> watcher{nullptr};
  return watcher;
}

// One for the whole process; null: none.
inline void WatchProgress(ProgressWatcher watcher) { ActiveProgressWatcher().store(watcher); }

inline void ReportProgress(absl::string_view doing, absl::string_view what) {
  const ProgressWatcher watcher = ActiveProgressWatcher().load(std::memory_order_relaxed);
  if (watcher != nullptr) watcher(doing, what);
}

}  // namespace tilewire

#endif  // ENGINE_BASE_PROGRESS_H_
