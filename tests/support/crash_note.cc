// SPDX-License-Identifier: Apache-2.0
#include "tests/support/crash_note.h"

#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "tests/support/tiles/tile_emulator.h"

// Belongs to the address sanitizer; absent in other builds. The undefined-behaviour sanitizer
// beside it has none, and aborts where UBSAN_OPTIONS has abort_on_error=1.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace tilewire::testing {
namespace {

std::atomic<int64_t> current_case = -1;
const char* kind_of_case = "";

// Only what a signal handler may call.
void Write(const char* text) {
  const ssize_t written = write(STDERR_FILENO, text, std::strlen(text));
  (void)written;
}

void Note() {
  char digits[24];
  char* at = digits + sizeof digits;
  *--at = '\0';
  int64_t rest = current_case;
  do {
    *--at = static_cast<char>('0' + rest % 10);
    rest /= 10;
  } while (rest > 0);
  Write("\nthe process died in ");
  Write(kind_of_case);
  Write(" ");
  Write(at);
  Write("\n");
}

void OnSignal(int signal_number) {
  if (signal_number == SIGPROF) Write("\na case takes too long");
  Note();
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

}  // namespace

void InstallCrashNote(const char* kind) {
  kind_of_case = kind;
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(Note);
    for (const int number : {SIGABRT, SIGPROF}) signal(number, OnSignal);
    return;
  }
  for (const int number : {SIGSEGV, SIGFPE, SIGBUS, SIGABRT, SIGPROF}) {
    signal(number, OnSignal);
  }
  if (!TilesAreEmulated()) signal(SIGILL, OnSignal);  // of which that is made
}

void NoteCase(int64_t index, unsigned seconds) {
  current_case = index;
  const itimerval timer = {.it_interval = {}, .it_value = {.tv_sec = seconds, .tv_usec = 0}};
  setitimer(ITIMER_PROF, &timer, nullptr);
}

}  // namespace tilewire::testing
