// SPDX-License-Identifier: Apache-2.0
//
// Amounts, and text of others, as people read them.
#ifndef CLIENT_AMOUNT_TEXT_H_
#define CLIENT_AMOUNT_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace tilewire::client {

// "812 B", "41.5 kB", "8.26 MB", "1.20 GB": three digits, powers of 1000.
std::string BytesText(int64_t bytes);

// "1 answer", "2 answers"; `what` takes an s.
std::string CountText(int64_t count, absl::string_view what);

// "1,234,567 cycles"; the amount without what follows the point.
std::string CyclesText(double cycles);

// "48.3", "212", "76.45", "1890": at most four digits, or all before the point; without a unit.
std::string RateText(double per_second);

// Shows as '?' each control character, also those of UTF-8 beyond ASCII, and each character that
// takes no room and turns the direction of text, breaks lines or hides: text of a file or a client
// may hold anything, and a terminal must not obey it.
std::string ShownText(absl::string_view text);

}  // namespace tilewire::client

#endif  // CLIENT_AMOUNT_TEXT_H_
