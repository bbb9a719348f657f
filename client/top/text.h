// SPDX-License-Identifier: Apache-2.0
//
// A server's work of an interval as text for people, and as JSON. Pure functions; thread-safe.
#ifndef CLIENT_TOP_TEXT_H_
#define CLIENT_TOP_TEXT_H_

#include <limits>
#include <string>

#include "absl/strings/string_view.h"
#include "client/top/interval.h"

namespace tilewire::client {

struct TopSize {
  static constexpr int kAny = std::numeric_limits<int>::max();
  int columns = kAny;  // a line is cut there; the columns that matter least are left out
  int lines = kAny;    // rows beyond them are counted only; at least the header is told
};

// Three lines about the server, a heading, and a line for each version: those that hold most cores
// first, then those that answer most, and below them those that are idle. A version that is not
// ready and answers nothing has its reason in the place of its numbers. Each line ends with a line
// feed; control characters of names and reasons are shown as '?'.
std::string TopText(const TopInterval& top, absl::string_view address, const TopSize& size);

// One line. The keys stay; what has no value is null.
std::string TopJson(const TopInterval& top);

}  // namespace tilewire::client

#endif  // CLIENT_TOP_TEXT_H_
