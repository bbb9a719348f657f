// SPDX-License-Identifier: Apache-2.0
//
// The process of a trial as a model leaves it that meets a defect of this program: for models of
// some names it crashes, hangs or takes memory; it tries all others out.
#ifndef TESTS_SUPPORT_MISBEHAVING_TRIAL_H_
#define TESTS_SUPPORT_MISBEHAVING_TRIAL_H_

#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <new>
#include <string>

#include "absl/strings/match.h"
#include "engine/base/progress.h"
#include "service/models/trial/trial_process.h"

namespace tilewire::testing {

// Until the system gives none.
[[noreturn]] inline void TakeMemory() {
  constexpr size_t kPiece = 1 << 20;
  while (true) {
    void* piece = mmap(nullptr, kPiece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (piece == MAP_FAILED) throw std::bad_alloc();
    *static_cast<char*>(piece) = 1;
  }
}

inline void Misbehave(const std::string& model) {
  if (absl::StartsWith(model, "crashes")) {
    signal(SIGSEGV, SIG_DFL);  // also where a sanitizer waits for it
    *static_cast<volatile int*>(nullptr) = 1;
  }
  if (absl::StartsWith(model, "aborts")) std::abort();
  if (absl::StartsWith(model, "ends")) _exit(3);
  if (absl::StartsWith(model, "is_killed")) kill(getpid(), SIGKILL);
  while (absl::StartsWith(model, "hangs")) pause();
  if (absl::StartsWith(model, "takes_memory")) TakeMemory();
}

// Returns only if there is no request to try; the result is the exit status.
inline int MisbehavingTrial() {
  service::TrialProcess process;
  if (!process.Begin()) return 1;
  ReportProgress("planning node", "conv1");
  Misbehave(process.request().name());
  process.Try();
}

}  // namespace tilewire::testing

#endif  // TESTS_SUPPORT_MISBEHAVING_TRIAL_H_
