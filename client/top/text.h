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
  int columns = kAny;  // cells of a line
  int lines = kAny;    // 1 or more; never exceeded
};

// Three lines about the server, a heading, and a line for each version: those that hold most cores
// first, then those that answer most, and below them those that are idle. A version that is not
// ready and answers nothing has its reason in the place of its numbers. Each line ends with a line
// feed; control characters of names and reasons are shown as '?'.
//
// In a narrow terminal the columns that matter least go until 24 cells of the longest name, or all
// of it, are there; then names are cut in the middle; the version goes last. The lines about the
// server lose whole parts. In a short one rows are counted that do not fit, and the lines about the
// server go, but for the first.
std::string TopText(const TopInterval& top, absl::string_view address, const TopSize& size);

// In the place of it, while no answer comes.
std::string NoAnswerText(absl::string_view reason, absl::string_view address, double interval_s,
                         const TopSize& size);

// One line. The keys stay; what has no value is null.
std::string TopJson(const TopInterval& top);

}  // namespace tilewire::client

#endif  // CLIENT_TOP_TEXT_H_
