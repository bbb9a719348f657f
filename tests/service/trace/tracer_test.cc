// SPDX-License-Identifier: Apache-2.0
#include "service/trace/tracer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "service/observe/steady_time.h"
#include "tests/service/trace/traced_requests.h"
#include "tests/support/captured_log.h"

namespace tilewire::service {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A sink that keeps the ids; it waits in its first write if it is told to, and is never done.
class KeepingSink final : public TraceSink {
 public:
  struct Kept {
    std::vector<std::string> ids;
    absl::Notification writes, may_go_on;
    bool waits = false, is_never_done = false;
    int lost_at_end = 0;
  };

  explicit KeepingSink(Kept* kept) : TraceSink(TraceLoss::kFile), kept_(*kept) {}

  void Write(absl::Span<const Trace> traces) override {
    for (const Trace& trace : traces)
      kept_.ids.push_back(absl::StrCat(trace.model, trace.request_id));
    if (!std::exchange(kept_.waits, false)) return;
    kept_.writes.Notify();
    kept_.may_go_on.WaitForNotification();
    Drop(2, "for a test");
  }
  bool Advance(absl::Duration) override { return !kept_.is_never_done; }
  void End() override {
    if (kept_.lost_at_end > 0) Drop(kept_.lost_at_end, "at the end");
  }

 private:
  Kept& kept_;
};

std::unique_ptr<Tracer> TracerOf(KeepingSink::Kept* kept, size_t places = 16) {
  std::vector<std::unique_ptr<TraceSink>> sinks;
  sinks.push_back(std::make_unique<KeepingSink>(kept));
  const auto name_of = [](uint32_t number) {
    return TraceMaker::Name{absl::StrCat("model", number, "/"), 1};
  };
  return std::make_unique<Tracer>(
      Tracer::Options{.terms = {}, .name_of = name_of, .file = "", .mode = "", .places = places},
      std::move(sinks));
}

TEST(TracerTest, WritesWhatWasAddedBeforeItEnds) {
  KeepingSink::Kept kept;
  auto tracer = TracerOf(&kept);
  tracer->Add(testing::RequestAt(0, "a"));
  TracedRequest unnamed = testing::RequestAt(1, "b");
  unnamed.record.model = 0;
  tracer->Add(unnamed);
  tracer = nullptr;
  EXPECT_THAT(kept.ids, ElementsAre("model7/a", "b"));
}

// While the sink is held up, the queue takes no more than it has places for.
TEST(TracerTest, AFullQueueDropsAndCounts) {
  KeepingSink::Kept kept;
  kept.waits = true;
  auto tracer = TracerOf(&kept, /*places=*/8);
  tracer->Add(testing::RequestAt(0));
  kept.writes.WaitForNotification();
  for (int i = 0; i < 11; ++i) tracer->Add(testing::RequestAt(i));
  EXPECT_EQ(tracer->Dropped(TraceLoss::kQueueFull), 3);
  EXPECT_EQ(tracer->Dropped(TraceLoss::kCollector), 0);
  kept.may_go_on.Notify();
  while (tracer->Dropped(TraceLoss::kFile) == 0) std::this_thread::yield();
  EXPECT_EQ(tracer->Dropped(TraceLoss::kFile), 2) << "the sink's own";
  tracer = nullptr;
  EXPECT_EQ(kept.ids.size(), 9u);
}

TEST(TracerTest, TheLastLossesAreCountedAndToldInOneLine) {
  tilewire::testing::CapturedLog log;
  KeepingSink::Kept kept;
  auto tracer = TracerOf(&kept);
  tracer->Add(testing::RequestAt(0));
  kept.lost_at_end = 5;
  tracer->Finish();
  EXPECT_EQ(tracer->Dropped(TraceLoss::kFile), 5) << "as the metrics read it";
  tracer->Finish();
  tracer = nullptr;
  const auto lines = log.LinesWith("lost since the start");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("[warning] traces that were lost since the start: 5 (file 5)"));
}

TEST(TracerTest, WhereNothingIsLostTheEndSaysNothing) {
  tilewire::testing::CapturedLog log;
  KeepingSink::Kept kept;
  auto tracer = TracerOf(&kept);
  tracer->Add(testing::RequestAt(0));
  tracer = nullptr;
  EXPECT_THAT(log.lines(), ElementsAre());
}

TEST(TracerTest, TheEndWaitsForASinkNoLongerThanItSays) {
  KeepingSink::Kept kept;
  kept.is_never_done = true;
  auto tracer = TracerOf(&kept);
  tracer->Add(testing::RequestAt(0));
  const absl::Time begin = SteadyNow();
  tracer = nullptr;
  EXPECT_GE(SteadyNow() - begin, Tracer::kLongestEnd);
  EXPECT_EQ(kept.ids.size(), 1u);
}

}  // namespace
}  // namespace tilewire::service
