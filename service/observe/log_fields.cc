// SPDX-License-Identifier: Apache-2.0
#include "service/observe/log_fields.h"

#include <atomic>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "spdlog/spdlog.h"

namespace tilewire::service {
namespace {

std::atomic<LogForm> form{LogForm::kText};

// The name of the file of a source that no macro of spdlog's gives, told by its address; the
// source's line is then the size of the text.
constexpr char kMark[] = "fields";

}  // namespace

void SetLogForm(LogForm wanted) { form.store(wanted); }
LogForm CurrentLogForm() { return form.load(std::memory_order_relaxed); }

void LogLine(spdlog::level::level_enum level, const std::string& text, const LogFields& fields) {
  spdlog::logger* const logger = spdlog::default_logger_raw();
  if (!logger->should_log(level)) return;
  if (CurrentLogForm() == LogForm::kText) {
    logger->log(level, spdlog::string_view_t(text));
    return;
  }
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const auto& [key, value] : fields.texts) object[key] = value;
  for (const auto& [key, value] : fields.numbers) object[key] = value;
  const std::string payload = absl::StrCat(
      text, object.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace));
  logger->log(spdlog::source_loc{kMark, static_cast<int>(text.size()), ""}, level,
              spdlog::string_view_t(payload));
}

LoggedParts PartsOf(const spdlog::source_loc& source, absl::string_view payload) {
  const auto text_size = static_cast<size_t>(source.line);
  if (source.filename != kMark || text_size > payload.size()) return {payload, ""};
  return {payload.substr(0, text_size), payload.substr(text_size)};
}

}  // namespace tilewire::service
