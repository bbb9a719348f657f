// SPDX-License-Identifier: Apache-2.0
#include "client/ending_signal.h"

#include <csignal>

namespace tilewire::client {
namespace {

std::atomic<bool> has_signal = false;
std::atomic<int> ending_signal = 0;

void NoteSignal(int signal) {
  ending_signal = signal;
  has_signal = true;
  std::signal(signal, SIG_DFL);  // a second one does not wait
}

}  // namespace

void CatchEndingSignals() {
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, NoteSignal);
  struct sigaction hangup;
  const bool is_ignored = sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler == SIG_IGN;
  if (!is_ignored) std::signal(SIGHUP, NoteSignal);
}

const std::atomic<bool>& HasEndingSignal() { return has_signal; }

int StatusOfEndingSignal() { return 128 + ending_signal; }

}  // namespace tilewire::client
