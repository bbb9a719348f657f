// SPDX-License-Identifier: Apache-2.0
//
// The lines that the process logs while this object lives, in the form that the server writes them.
// Thread-safe, but that nothing may log while it is made or goes.
#ifndef TESTS_SUPPORT_CAPTURED_LOG_H_
#define TESTS_SUPPORT_CAPTURED_LOG_H_

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "service/observe/log_fields.h"
#include "service/observe/log_formatter.h"
#include "spdlog/sinks/base_sink.h"
#include "spdlog/spdlog.h"

namespace tilewire::testing {

class CapturedLog {
 public:
  explicit CapturedLog(service::LogForm form = service::LogForm::kText) {
    service::SetLogForm(form);
    auto logger = std::make_shared<spdlog::logger>("captured", sink_);
    logger->set_formatter(service::LogFormatter(form));
    spdlog::set_default_logger(logger);
  }
  ~CapturedLog() {
    service::SetLogForm(form_before_);
    spdlog::set_default_logger(before_);
  }
  CapturedLog(const CapturedLog&) = delete;

  std::vector<std::string> lines() const { return sink_->lines(); }
  // The lines that hold this text.
  std::vector<std::string> LinesWith(absl::string_view text) const {
    std::vector<std::string> found;
    for (std::string& line : lines()) {
      if (absl::StrContains(line, text)) found.push_back(std::move(line));
    }
    return found;
  }
  void Clear() { sink_->Clear(); }

 private:
  class Sink final : public spdlog::sinks::base_sink<std::mutex> {
   public:
    std::vector<std::string> lines() {
      const std::lock_guard lock(mutex_);
      return lines_;
    }
    void Clear() {
      const std::lock_guard lock(mutex_);
      lines_.clear();
    }

   private:
    void sink_it_(const spdlog::details::log_msg& message) override {
      spdlog::memory_buf_t line;
      formatter_->format(message, line);
      while (line.size() > 0 && line[line.size() - 1] == '\n') line.resize(line.size() - 1);
      lines_.emplace_back(line.data(), line.size());
    }
    void flush_() override {}

    std::vector<std::string> lines_;
  };

  const service::LogForm form_before_ = service::CurrentLogForm();
  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
  const std::shared_ptr<Sink> sink_ = std::make_shared<Sink>();
};

}  // namespace tilewire::testing

#endif  // TESTS_SUPPORT_CAPTURED_LOG_H_
