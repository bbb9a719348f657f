// SPDX-License-Identifier: Apache-2.0
//
// Log lines as spdlog writes them, but with times in UTC, and one line per message, whatever the
// message contains: names come from files and requests, and may hold line breaks, terminal
// sequences or bytes that are not text. Thread-compatible.
#ifndef SERVICE_OBSERVE_LOG_FORMATTER_H_
#define SERVICE_OBSERVE_LOG_FORMATTER_H_

#include <memory>

#include "spdlog/formatter.h"

namespace tilewire::service {

// Everything but printable ASCII is written as \n, \x1b, \xc3.
std::unique_ptr<spdlog::formatter> LogFormatter();

}  // namespace tilewire::service

#endif  // SERVICE_OBSERVE_LOG_FORMATTER_H_
