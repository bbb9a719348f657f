// SPDX-License-Identifier: Apache-2.0
#include "service/observe/flight_record.h"

#include <algorithm>
#include <cstring>

namespace tilewire::service {

absl::string_view TextOf(const FlightId& id) { return {id.data(), strnlen(id.data(), id.size())}; }

FlightId FlightIdOf(absl::string_view text) {
  FlightId id = {};
  text.copy(id.data(), id.size());
  return id;
}

// Each store of a word is a release: a reader of it sees the odd number that was stored before.
void FlightRing::Write(const FlightRecord& record, absl::string_view id) {
  std::array<uint64_t, kWords> words = {};
  std::memcpy(words.data(), &record, sizeof(record));
  const FlightId kept = FlightIdOf(id);
  std::memcpy(words.data() + kRecordWords, kept.data(), sizeof(kept));
  const uint64_t number = written_.load(std::memory_order_relaxed);
  Slot& slot = slots_[number % kRecords];
  slot.sequence.store(2 * number + 1, std::memory_order_relaxed);
  for (size_t i = 0; i < kWords; ++i) slot.words[i].store(words[i], std::memory_order_release);
  slot.sequence.store(2 * number + 2, std::memory_order_release);
  written_.store(number + 1, std::memory_order_release);
}

// Each load of a word is an acquire: the number is read again after it.
bool FlightRing::Read(uint64_t number, FlightRecord* record, FlightId* id) const {
  const Slot& slot = slots_[number % kRecords];
  if (slot.sequence.load(std::memory_order_acquire) != 2 * number + 2) return false;
  std::array<uint64_t, kWords> words;
  for (size_t i = 0; i < kWords; ++i) words[i] = slot.words[i].load(std::memory_order_acquire);
  if (slot.sequence.load(std::memory_order_relaxed) != 2 * number + 2) return false;
  std::memcpy(static_cast<void*>(record), words.data(), sizeof(*record));
  std::memcpy(id->data(), words.data() + kRecordWords, sizeof(*id));
  return true;
}

namespace {

std::atomic<uint64_t> recorders{0};

// Visits the records from `first` on; returns how many of them were gone.
uint64_t Visit(const FlightRing& ring, uint64_t first, uint64_t end, FlightRecorder::Visit visit) {
  FlightRecord record;
  FlightId id;
  uint64_t gone = 0;
  for (uint64_t number = first; number < end; ++number) {
    if (ring.Read(number, &record, &id)) {
      visit(record, TextOf(id));
    } else {
      ++gone;
    }
  }
  return gone;
}

uint64_t FirstKept(uint64_t written) {
  return written > FlightRing::kRecords ? written - FlightRing::kRecords : 0;
}

}  // namespace

// When the thread ends, the next one that comes takes its ring over.
struct FlightRecorder::OfThread {
  ~OfThread() {
    if (lane != nullptr) lane->taken.store(false, std::memory_order_release);
  }
  uint64_t recorder = 0;
  std::shared_ptr<Lane> lane;
};

FlightRecorder::FlightRecorder() : number_(recorders.fetch_add(1) + 1) {}

FlightRing* FlightRecorder::RingOfThread() {
  thread_local OfThread mine;
  if (mine.recorder != number_) {
    if (mine.lane != nullptr) mine.lane->taken.store(false, std::memory_order_release);
    mine.lane = TakeLane();
    mine.recorder = number_;
  }
  return &mine.lane->ring;
}

std::shared_ptr<FlightRecorder::Lane> FlightRecorder::TakeLane() {
  threading::MutexLock lock(&mutex_);
  for (const std::shared_ptr<Lane>& lane : lanes_) {
    if (!lane->taken.exchange(true, std::memory_order_acquire)) return lane;
  }
  return lanes_.emplace_back(std::make_shared<Lane>());
}

std::vector<std::shared_ptr<FlightRecorder::Lane>> FlightRecorder::Lanes() const {
  threading::MutexLock lock(&mutex_);
  return lanes_;
}

void FlightRecorder::ReadNew(Cursor* cursor, FlightRecorder::Visit visit) const {
  const std::vector<std::shared_ptr<Lane>> lanes = Lanes();
  cursor->next.resize(lanes.size());
  for (size_t i = 0; i < lanes.size(); ++i) {
    const uint64_t end = lanes[i]->ring.written();
    const uint64_t first = std::max(cursor->next[i], FirstKept(end));
    cursor->missed += first - cursor->next[i];
    cursor->missed += service::Visit(lanes[i]->ring, first, end, visit);
    cursor->next[i] = end;
  }
}

void FlightRecorder::ReadAll(FlightRecorder::Visit visit) const {
  for (const std::shared_ptr<Lane>& lane : Lanes()) {
    const uint64_t end = lane->ring.written();
    service::Visit(lane->ring, FirstKept(end), end, visit);
  }
}

}  // namespace tilewire::service
