// SPDX-License-Identifier: Apache-2.0
//
// A terminal's screen that is drawn anew again and again. While it lives, the terminal shows its
// other screen; what it showed before comes back when it is destroyed, when SIGINT, SIGTERM or
// SIGHUP ends the program, and while Ctrl-Z stops it. One at a time. Thread-compatible.
#ifndef CLIENT_TOOL_SCREEN_H_
#define CLIENT_TOOL_SCREEN_H_

#include "absl/strings/string_view.h"

namespace tilewire::client {

class Screen {
 public:
  // Whether standard output is a terminal that can be drawn on.
  static bool IsPossible();

  Screen();
  ~Screen();
  Screen(const Screen&) = delete;

  struct Size {
    int columns = 80, lines = 24;
  };
  // As it is now; it may change at any time.
  Size size() const;

  // Shows `text` alone: lines that fit the size, each with a line feed at its end.
  void Draw(absl::string_view text);
};

}  // namespace tilewire::client

#endif  // CLIENT_TOOL_SCREEN_H_
