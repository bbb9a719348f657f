// SPDX-License-Identifier: Apache-2.0
#include "service/observe/background_log.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "engine/base/line_writer.h"
#include "engine/threading/mutex.h"
#include "service/observe/log_formatter.h"
#include "spdlog/async.h"
#include "spdlog/sinks/stdout_color_sinks.h"
#include "spdlog/spdlog.h"

namespace tilewire::service {
namespace {

// Lines queued at most; older ones are dropped.
constexpr size_t kMostLines = 1024;
constexpr size_t kMostVerboseLines = 8192;

class Warnings {
 public:
  void Add(const spdlog::details::log_msg& message) {
    if (message.level < spdlog::level::warn) return;
    const auto level = spdlog::level::to_string_view(message.level);
    const LoggedParts parts =
        PartsOf(message.source, {message.payload.data(), message.payload.size()});
    LoggedLine line = {absl::FromChrono(message.time), std::string(level.data(), level.size()),
                       std::string(parts.text)};
    threading::MutexLock lock(&mutex_);
    lines_.push_front(std::move(line));
    if (lines_.size() > kMostWarnings) lines_.pop_back();
  }
  std::vector<LoggedLine> All() const {
    threading::MutexLock lock(&mutex_);
    return {lines_.begin(), lines_.end()};
  }

 private:
  mutable threading::Mutex mutex_;
  std::deque<LoggedLine> lines_ ABSL_GUARDED_BY(mutex_);
};

// As old as the process, as the logs are.
Warnings& AllWarnings() {
  static auto* const warnings = new Warnings;
  return *warnings;
}

// Writes on a log's thread, and counts the flushes that have been carried out.
class StderrSink final : public spdlog::sinks::stderr_color_sink_mt {
  using Base = spdlog::sinks::stderr_color_sink_mt;

 public:
  explicit StderrSink(std::weak_ptr<spdlog::details::thread_pool> lines)
      : lines_(std::move(lines)) {}

  void log(const spdlog::details::log_msg& message) override {
    if (const auto lines = lines_.lock()) {
      TellLost(static_cast<int64_t>(lines->overrun_counter()), message.logger_name);
    }
    AllWarnings().Add(message);
    Base::log(message);
  }

  void flush() override {
    Base::flush();
    threading::MutexLock lock(&mutex_);
    ++flushes_;
  }

  int64_t lost() const { return told_.load(std::memory_order_relaxed); }

  int64_t flushes() {
    threading::MutexLock lock(&mutex_);
    return flushes_;
  }

  bool AwaitFlushAfter(int64_t before, absl::Duration longest) {
    const auto flushed = [this, before]()
                             ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return flushes_ > before; };
    threading::MutexLock lock(&mutex_);
    return mutex_.AwaitWithTimeout(absl::Condition(&flushed), longest);
  }

 private:
  void TellLost(int64_t lost, spdlog::string_view_t log) {
    if (lost == told_) return;
    const std::string text =
        absl::StrCat(lost - told_, " log lines were lost: standard error was not read in time");
    told_ = lost;
    Base::log({log, spdlog::level::warn, text});
  }

  const std::weak_ptr<spdlog::details::thread_pool> lines_;
  std::atomic<int64_t> told_{0};  // lost lines; written by the log's thread
  threading::Mutex mutex_;
  int64_t flushes_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Lines that wait, the thread that writes them, and where it writes them to.
struct Log {
  Log(const char* name, const char* thread, size_t most_lines)
      : lines(std::make_shared<spdlog::details::thread_pool>(
            most_lines, 1, [thread] { pthread_setname_np(pthread_self(), thread); })),
        sink(std::make_shared<StderrSink>(lines)),
        logger(std::make_shared<spdlog::async_logger>(
            name, sink, lines, spdlog::async_overflow_policy::overrun_oldest)) {}

  bool Flush(absl::Duration longest) const {
    const int64_t before = sink->flushes();
    logger->flush();
    return sink->AwaitFlushAfter(before, longest);
  }

  const std::shared_ptr<spdlog::details::thread_pool> lines;
  const std::shared_ptr<StderrSink> sink;
  const std::shared_ptr<spdlog::async_logger> logger;
};

// They live as long as the process: their threads may be writing when it ends.
std::atomic<const Log*> process_log = nullptr, verbose_log = nullptr;

void WriteVerbose(absl::string_view line) {
  const absl::string_view text = absl::StripSuffix(line, "\n");
  verbose_log.load()->logger->log(spdlog::level::info,
                                  spdlog::string_view_t(text.data(), text.size()));
}

}  // namespace

void StartLog(const std::string& level) {
  process_log = new Log("tilewire", "tw-log", kMostLines);
  spdlog::set_default_logger(process_log.load()->logger);
  spdlog::set_formatter(LogFormatter(CurrentLogForm()));
  spdlog::set_level(spdlog::level::from_str(level));
}

void StartVerboseLog() {
  verbose_log = new Log("verbose", "tw-verbose", kMostVerboseLines);
  if (CurrentLogForm() == LogForm::kJson) {
    verbose_log.load()->logger->set_formatter(LogFormatter(LogForm::kJson));
  } else {
    verbose_log.load()->logger->set_pattern("%v");
  }
  SetLineWriter(WriteVerbose);
}

int64_t LostLogLines() {
  int64_t lost = 0;
  for (const Log* one : {process_log.load(), verbose_log.load()}) {
    if (one != nullptr) lost += one->sink->lost();
  }
  return lost;
}

std::vector<LoggedLine> RecentWarnings() { return AllWarnings().All(); }

bool FlushLog(absl::Duration longest) {
  const absl::Time end = absl::Now() + longest;
  for (const Log* one : {process_log.load(), verbose_log.load()}) {
    if (one != nullptr && !one->Flush(std::max(end - absl::Now(), absl::ZeroDuration())))
      return false;
  }
  return true;
}

}  // namespace tilewire::service
