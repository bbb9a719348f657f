// SPDX-License-Identifier: Apache-2.0
//
// One line on stderr that says how far a long command is. Redrawn in place on a terminal, at most
// ten times a second; elsewhere (a log, a pipe) only the last state is written. Thread-compatible.
#ifndef CLIENT_PROGRESS_H_
#define CLIENT_PROGRESS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tilewire::client {

// "[#####.....]", `width` characters between the brackets.
std::string Bar(double fraction, int width = 20);

class Progress {
 public:
  Progress();
  ~Progress();  // Finishes the line.

  // `fraction` of the work is done, 0 to 1.
  void Show(double fraction, absl::string_view text);
  // A line that stays, above the live one.
  void Note(absl::string_view line);

 private:
  void Draw(absl::string_view line);

  const bool terminal_;
  absl::Time next_ = absl::InfinitePast();
  std::string last_;
};

}  // namespace tilewire::client

#endif  // CLIENT_PROGRESS_H_
