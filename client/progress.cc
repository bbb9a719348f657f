// SPDX-License-Identifier: Apache-2.0
#include "client/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"

namespace tilewire::client {

std::string Bar(double fraction, int width) {
  const int full = std::clamp(static_cast<int>(fraction * width), 0, width);
  return absl::StrCat("[", std::string(full, '#'), std::string(width - full, '.'), "]");
}

Progress::Progress() : terminal_(isatty(STDERR_FILENO)) {}

Progress::~Progress() {
  if (last_.empty()) return;
  Draw(last_);
  std::fputc('\n', stderr);
}

void Progress::Show(double fraction, absl::string_view text) {
  last_ =
      absl::StrFormat("%s %3.0f%%  %s", Bar(fraction), 100 * std::clamp(fraction, 0.0, 1.0), text);
  if (!terminal_ || absl::Now() < next_) return;
  next_ = absl::Now() + absl::Milliseconds(100);
  Draw(last_);
}

void Progress::Note(absl::string_view line) {
  absl::FPrintF(stderr, "%s%s\n", terminal_ ? "\r\x1b[K" : "", line);
  if (terminal_ && !last_.empty()) Draw(last_);
}

void Progress::Draw(absl::string_view line) {
  // "\x1b[K" clears what a longer line left behind.
  if (terminal_) {
    absl::FPrintF(stderr, "\r%s\x1b[K", line);
  } else {
    absl::FPrintF(stderr, "%s", line);
  }
  std::fflush(stderr);
}

}  // namespace tilewire::client
