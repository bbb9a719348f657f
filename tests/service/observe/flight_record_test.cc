// SPDX-License-Identifier: Apache-2.0
#include "service/observe/flight_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tilewire::service {
namespace {

// A record all of whose parts tell the same number.
FlightRecord RecordOf(int64_t number) {
  FlightRecord record;
  record.arrival_ns = number;
  record.decode_ns = number + 1;
  record.queue_ns = number + 2;
  record.plan_ns = number + 3;
  record.run_ns = number + 4;
  record.encode_ns = number + 5;
  record.write_ns = number + 6;
  record.core_ns = number + 7;
  record.plan_key = static_cast<uint64_t>(number) + 8;
  record.rows = static_cast<uint32_t>(number);
  return record;
}

// Whether it is a whole record, not parts of two.
bool IsWhole(const FlightRecord& record, absl::string_view id) {
  const FlightRecord expected = RecordOf(record.arrival_ns);
  return std::memcmp(&record, &expected, sizeof(record)) == 0 &&
         id == absl::StrCat("id ", record.arrival_ns);
}

TEST(FlightRecordTest, TheStagesFollowEachOther) {
  const FlightRecord record = RecordOf(100);
  EXPECT_EQ(record.StartNs(), 100 + 101 + 102);
  EXPECT_EQ(record.TotalNs(), 101 + 102 + 103 + 104 + 105 + 106);
  EXPECT_EQ(record.EndNs(), 100 + record.TotalNs());
}

TEST(FlightRecordTest, ARingKeepsTheLastRecordsAndTheBeginningsOfIds) {
  FlightRing ring;
  const auto kept = static_cast<int64_t>(FlightRing::kRecords);
  for (int64_t i = 0; i < kept + 3; ++i) ring.Write(RecordOf(i), std::string(50, 'x'));
  EXPECT_EQ(ring.written(), kept + 3);
  FlightRecord record;
  FlightId id;
  for (const int64_t number : {0, 2}) EXPECT_FALSE(ring.Read(number, &record, &id)) << number;
  EXPECT_FALSE(ring.Read(kept + 3, &record, &id)) << "nothing was written there yet";
  for (const int64_t number : {int64_t{3}, kept + 2}) {
    ASSERT_TRUE(ring.Read(number, &record, &id)) << number;
    EXPECT_EQ(record.arrival_ns, number);
    EXPECT_EQ(TextOf(id), std::string(40, 'x'));
  }
}

TEST(FlightRecordTest, AReaderSeesNewRecordsOnceAndCountsThoseItMissed) {
  FlightRecorder recorder;
  FlightRecorder::Cursor cursor;
  std::vector<int64_t> seen;
  const auto read = [&] {
    seen.clear();
    recorder.ReadNew(&cursor, [&seen](const FlightRecord& record, absl::string_view) {
      seen.push_back(record.arrival_ns);
    });
  };
  read();
  EXPECT_TRUE(seen.empty());
  for (int64_t i = 1; i <= 3; ++i) recorder.Add(RecordOf(i), "");
  read();
  EXPECT_THAT(seen, ::testing::ElementsAre(1, 2, 3));
  read();
  EXPECT_TRUE(seen.empty());
  const auto kept = static_cast<int64_t>(FlightRing::kRecords);
  for (int64_t i = 0; i < kept + 5; ++i) recorder.Add(RecordOf(i), "");
  read();
  EXPECT_EQ(seen.size(), kept);
  EXPECT_EQ(cursor.missed, 5);
}

TEST(FlightRecordTest, AThreadTakesOverTheRingOfOneThatEnded) {
  FlightRecorder recorder;
  for (int64_t i = 0; i < 20; ++i) {
    std::thread([&recorder, i] { recorder.Add(RecordOf(i), ""); }).join();
  }
  FlightRecorder::Cursor cursor;
  int records = 0;
  recorder.ReadNew(&cursor, [&records](const FlightRecord&, absl::string_view) { ++records; });
  EXPECT_EQ(records, 20);
  EXPECT_EQ(cursor.next.size(), 1) << "one ring";
}

TEST(FlightRecordTest, AThreadWritesToOneRecorderAfterAnother) {
  auto first = std::make_unique<FlightRecorder>();
  first->Add(RecordOf(1), "");
  first = nullptr;
  FlightRecorder second;
  second.Add(RecordOf(2), "");
  std::vector<int64_t> seen;
  second.ReadAll([&seen](const FlightRecord& record, absl::string_view) {
    seen.push_back(record.arrival_ns);
  });
  EXPECT_THAT(seen, ::testing::ElementsAre(2));
}

TEST(FlightRecordTest, EightWritersAndAReaderSeeWholeRecordsOnly) {
  constexpr int kWriters = 8;
  constexpr int64_t kEach = 60'000;  // many times round each ring
  FlightRecorder recorder;
  std::atomic<int> writing{kWriters};
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&recorder, &writing, w] {
      for (int64_t i = 0; i < kEach; ++i) {
        const int64_t number = w * kEach + i;
        recorder.Add(RecordOf(number), absl::StrCat("id ", number));
      }
      --writing;
    });
  }
  FlightRecorder::Cursor cursor;
  int64_t seen = 0, torn = 0;
  std::vector<int64_t> last(kWriters, -1);
  const auto visit = [&](const FlightRecord& record, absl::string_view id) {
    ++seen;
    if (!IsWhole(record, id)) ++torn;
    int64_t& before = last[(record.arrival_ns / kEach) % kWriters];
    EXPECT_GT(record.arrival_ns, before) << "the order of a thread's records";
    before = record.arrival_ns;
  };
  while (writing.load() > 0) recorder.ReadNew(&cursor, visit);
  for (std::thread& writer : writers) writer.join();
  recorder.ReadNew(&cursor, visit);
  EXPECT_EQ(torn, 0);
  EXPECT_GT(seen, 0);
  EXPECT_EQ(seen + static_cast<int64_t>(cursor.missed), kWriters * kEach);
}

}  // namespace
}  // namespace tilewire::service
