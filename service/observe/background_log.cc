// SPDX-License-Identifier: Apache-2.0
#include "service/observe/background_log.h"

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "engine/threading/mutex.h"
#include "service/observe/log_formatter.h"
#include "spdlog/async.h"
#include "spdlog/sinks/stdout_color_sinks.h"
#include "spdlog/spdlog.h"

namespace tilewire::service {
namespace {

constexpr char kName[] = "tilewire";
// That wait to be written; beyond them the oldest are lost.
constexpr size_t kMostLines = 1024;

// Writes on the log's thread, and counts the flushes that have been carried out.
class StderrSink final : public spdlog::sinks::stderr_color_sink_mt {
  using Base = spdlog::sinks::stderr_color_sink_mt;

 public:
  explicit StderrSink(std::weak_ptr<spdlog::details::thread_pool> lines)
      : lines_(std::move(lines)) {}

  void log(const spdlog::details::log_msg& message) override {
    if (const auto lines = lines_.lock()) TellLost(static_cast<int64_t>(lines->overrun_counter()));
    Base::log(message);
  }

  void flush() override {
    Base::flush();
    threading::MutexLock lock(&mutex_);
    ++flushes_;
  }

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
  void TellLost(int64_t lost) {
    if (lost == told_) return;
    const std::string text =
        absl::StrCat(lost - told_, " log lines were lost: nothing read standard error");
    told_ = lost;
    Base::log({kName, spdlog::level::warn, text});
  }

  const std::weak_ptr<spdlog::details::thread_pool> lines_;
  int64_t told_ = 0;  // lost lines; of the log's thread
  threading::Mutex mutex_;
  int64_t flushes_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Lives as long as the process: the log's thread may be writing when the process ends.
std::atomic<StderrSink*> sink = nullptr;

}  // namespace

void StartLog(const std::string& level) {
  spdlog::init_thread_pool(kMostLines, 1, [] { pthread_setname_np(pthread_self(), "tw-log"); });
  static const auto* const owned =
      new std::shared_ptr<StderrSink>(std::make_shared<StderrSink>(spdlog::thread_pool()));
  spdlog::set_default_logger(std::make_shared<spdlog::async_logger>(
      kName, *owned, spdlog::thread_pool(), spdlog::async_overflow_policy::overrun_oldest));
  spdlog::set_formatter(LogFormatter());
  spdlog::set_level(spdlog::level::from_str(level));
  sink = owned->get();
}

bool FlushLog(absl::Duration longest) {
  if (sink == nullptr) return true;
  const int64_t before = sink.load()->flushes();
  spdlog::default_logger()->flush();
  return sink.load()->AwaitFlushAfter(before, longest);
}

}  // namespace tilewire::service
