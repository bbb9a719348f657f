// SPDX-License-Identifier: Apache-2.0
#include "client/tool/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace tilewire::client {
namespace {

// Sequences of xterm, which all terminals of today know.
constexpr absl::string_view kEnter = "\x1b[?1049h\x1b[H\x1b[2J", kLeave = "\x1b[?1049l";
constexpr absl::string_view kHome = "\x1b[H", kClearLine = "\x1b[K", kClearBelow = "\n\x1b[J";
constexpr int kEnding[] = {SIGINT, SIGTERM, SIGHUP};

// May be called by a signal's handler: no stream of the library.
void WriteAtOnce(absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

// The program then ends as if nothing had been handled.
void End(int signal) {
  WriteAtOnce(kLeave);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

// Goes on here when the shell continues the program.
void Stop(int) {
  const int error = errno;
  WriteAtOnce(kLeave);
  std::raise(SIGSTOP);
  WriteAtOnce(kEnter);
  errno = error;
}

}  // namespace

bool Screen::IsPossible() {
  const char* const kind = std::getenv("TERM");
  return isatty(STDOUT_FILENO) && kind != nullptr && absl::string_view(kind) != "dumb";
}

Screen::Screen() {
  std::fflush(stdout);
  for (const int signal : kEnding) std::signal(signal, End);
  std::signal(SIGTSTP, Stop);
  WriteAtOnce(kEnter);
}

Screen::~Screen() {
  WriteAtOnce(kLeave);
  for (const int signal : kEnding) std::signal(signal, SIG_DFL);
  std::signal(SIGTSTP, SIG_DFL);
}

Screen::Size Screen::size() const {
  winsize window = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0 || window.ws_row == 0)
    return {};
  return {.columns = window.ws_col, .lines = window.ws_row};
}

// Lines are cleared before they are written: after one that fills the width, clearing would take
// its last character.
void Screen::Draw(absl::string_view text) {
  text = absl::StripSuffix(text, "\n");
  const auto lines = 1 + std::count(text.begin(), text.end(), '\n');
  WriteAtOnce(absl::StrCat(kHome, kClearLine,
                           absl::StrReplaceAll(text, {{"\n", absl::StrCat("\n", kClearLine)}}),
                           lines < size().lines ? kClearBelow : ""));
}

}  // namespace tilewire::client
