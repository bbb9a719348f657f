// SPDX-License-Identifier: Apache-2.0
#include "service/observe/log_formatter.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "spdlog/pattern_formatter.h"

namespace tilewire::service {
namespace {

class EscapingFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& line) override {
    const absl::string_view payload(message.payload.data(), message.payload.size());
    const std::string text = Escaped(PartsOf(message.source, payload).text);
    spdlog::details::log_msg safe = message;
    safe.payload = spdlog::string_view_t(text.data(), text.size());
    lines_.format(safe, line);
    message.color_range_start = safe.color_range_start;  // sinks ask the message for it
    message.color_range_end = safe.color_range_end;
  }

  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<EscapingFormatter>();
  }

 private:
  static std::string Escaped(absl::string_view text) {
    std::string escaped;
    for (const char c : text) {
      if (absl::ascii_isprint(c)) {
        escaped.push_back(c);
      } else {
        escaped += absl::CHexEscape(absl::string_view(&c, 1));
      }
    }
    return escaped;
  }

  // As the times of --verbose (engine/primitives/verbose.cc): one clock for all of standard error.
  spdlog::pattern_formatter lines_{"[%Y-%m-%dT%H:%M:%S.%eZ] [%n] [%^%l%$] %v",
                                   spdlog::pattern_time_type::utc};
};

class JsonFormatter final : public spdlog::formatter {
 public:
  using Json = nlohmann::ordered_json;

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& line) override {
    const LoggedParts parts =
        PartsOf(message.source, {message.payload.data(), message.payload.size()});
    const auto level = spdlog::level::to_string_view(message.level);
    Json object = {{"time", absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromChrono(message.time),
                                             absl::UTCTimeZone())},
                   {"level", std::string(level.data(), level.size())},
                   {"log", std::string(message.logger_name.data(), message.logger_name.size())},
                   {"text", std::string(parts.text)}};
    if (!parts.fields.empty()) object.update(Json::parse(parts.fields));
    const std::string text = object.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
    line.append(text.data(), text.data() + text.size());
  }

  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonFormatter>();
  }
};

}  // namespace

std::unique_ptr<spdlog::formatter> LogFormatter(LogForm form) {
  if (form == LogForm::kJson) return std::make_unique<JsonFormatter>();
  return std::make_unique<EscapingFormatter>();
}

}  // namespace tilewire::service
