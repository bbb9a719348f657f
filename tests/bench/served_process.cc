// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/served_process.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <new>

#include "absl/time/clock.h"
#include "engine/base/status_macros.h"

namespace tilewire::bench {
namespace {

constexpr absl::Duration kLongestStart = absl::Minutes(2);

}  // namespace

absl::StatusOr<std::unique_ptr<ServedProcess>> ServedProcess::Start(const Serve& serve) {
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return absl::InternalError("no memory to share");
  auto process = std::unique_ptr<ServedProcess>(new ServedProcess(new (memory) Shared));
  process->child_ = fork();
  if (process->child_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    CountAllocations(&process->shared_->allocations);
    const absl::Status status = serve(process->shared_);
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    _exit(1);
  }
  ABSL_RETURN_IF_ERROR(process->AwaitPort());
  return process;
}

absl::Status ServedProcess::AwaitPort() const {
  const absl::Time start = absl::Now();
  while (port() == 0) {
    absl::SleepFor(absl::Milliseconds(10));
    const bool ended = waitpid(child_, nullptr, WNOHANG) != 0;
    if (ended || absl::Now() - start > kLongestStart) {
      return absl::InternalError("the server did not start");
    }
  }
  return absl::OkStatus();
}

ServedProcess::~ServedProcess() {
  if (child_ > 0) {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  munmap(shared_, sizeof(Shared));
}

}  // namespace tilewire::bench
