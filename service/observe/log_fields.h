// SPDX-License-Identifier: Apache-2.0
//
// Lines of the log whose values programs can read: in JSON each value has a key of its own beside
// the text; in the text form there is the text alone. Thread-safe.
#ifndef SERVICE_OBSERVE_LOG_FIELDS_H_
#define SERVICE_OBSERVE_LOG_FIELDS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "spdlog/common.h"

namespace tilewire::service {

enum class LogForm { kText, kJson };

// The form of all lines from now on; kText until it is called.
void SetLogForm(LogForm form);
LogForm CurrentLogForm();

struct LogFields {
  std::vector<std::pair<const char*, std::string>> texts;
  std::vector<std::pair<const char*, double>> numbers;
};

// Writes a line to spdlog's default logger.
void LogLine(spdlog::level::level_enum level, const std::string& text, const LogFields& fields);

// A message as LogLine() hands it to a formatter: the text, then an object of fields in JSON, which
// is empty for lines that others write. Nothing that a text contains can forge fields.
struct LoggedParts {
  absl::string_view text, fields;
};
LoggedParts PartsOf(const spdlog::source_loc& source, absl::string_view payload);

}  // namespace tilewire::service

#endif  // SERVICE_OBSERVE_LOG_FIELDS_H_
