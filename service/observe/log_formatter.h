// SPDX-License-Identifier: Apache-2.0
//
// Log lines as spdlog writes them, but with times in UTC, and one line per message, whatever the
// message contains: names come from files and requests, and may hold line breaks, terminal
// sequences or bytes that are not text. Thread-compatible.
#ifndef SERVICE_OBSERVE_LOG_FORMATTER_H_
#define SERVICE_OBSERVE_LOG_FORMATTER_H_

#include <memory>

#include "service/observe/log_fields.h"
#include "spdlog/formatter.h"

namespace tilewire::service {

// In the form kText everything but printable ASCII is written as \n, \x1b, \xc3. In the form kJson
// a line is an object with the keys time, level, log and text, and those of LogLine()'s fields.
std::unique_ptr<spdlog::formatter> LogFormatter(LogForm form = LogForm::kText);

}  // namespace tilewire::service

#endif  // SERVICE_OBSERVE_LOG_FORMATTER_H_
