// SPDX-License-Identifier: Apache-2.0
//
// The fate of each request, to be read afterwards: one record per ended request, in a ring per
// thread. To write one is to copy it: no lock, and no allocation but a thread's first. Readers take
// what they get: a record that is overwritten while they read is left out.
#ifndef SERVICE_OBSERVE_FLIGHT_RECORD_H_
#define SERVICE_OBSERVE_FLIGHT_RECORD_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "engine/threading/mutex.h"

namespace tilewire::service {

// Times in nanoseconds; of a stage that was not reached, 0. The stages follow each other: decode,
// queue, plan, run, encode, write.
struct FlightRecord {
  enum Flag : uint8_t {
    kIsInference = 1,    // else a plan is explained or a primitive runs
    kWaitedForPlan = 2,  // parked while another request made the plan of its shape
    kMadePlan = 4,
    kRanSerially = 8,  // on one thread, beside the arena
    kInStream = 16,    // one of a stream of requests
  };

  int64_t arrival_ns = 0;  // since 1970
  int64_t decode_ns = 0, queue_ns = 0;
  int64_t plan_ns = 0;  // until the run had its plan, which it found, made or waited for
  int64_t run_ns = 0, encode_ns = 0;
  int64_t reorder_ns = 0;  // of the run: reading inputs and writing outputs
  int64_t write_ns = 0;    // until the client had taken the answer
  int64_t core_ns = 0;     // that plan, run and encode held cores, all together; 0: not known
  uint64_t plan_key = 0;   // requests with the same one take about the same time; 0: of none
  uint32_t model = 0;      // VersionStatistics::number(); 0: of none
  uint32_t rows = 0;       // 0: it was not decoded
  uint32_t batch = 0;      // rows that were computed together; 0: it did not run
  uint8_t code = 0;        // absl::StatusCode
  uint8_t flags = 0;
  uint16_t spare = 0;

  int64_t StartNs() const { return arrival_ns + decode_ns + queue_ns; }
  // From the start of its run to its encoded answer.
  int64_t RunningNs() const { return plan_ns + run_ns + encode_ns; }
  int64_t EndNs() const { return StartNs() + RunningNs() + write_ns; }
  int64_t TotalNs() const { return EndNs() - arrival_ns; }
};
static_assert(sizeof(FlightRecord) == 96);

// The beginning of what the client named its request.
using FlightId = std::array<char, 40>;
absl::string_view TextOf(const FlightId& id);
FlightId FlightIdOf(absl::string_view text);

// One writer, any number of readers. The records of the last kRecords requests.
class FlightRing {
 public:
  static constexpr uint64_t kRecords = 4096;

  FlightRing() : slots_(new Slot[kRecords]) {}

  void Write(const FlightRecord& record, absl::string_view id);

  // How many were written so far.
  uint64_t written() const { return written_.load(std::memory_order_acquire); }
  // Whether the record with this number, from 0 up, is still there: copies it.
  bool Read(uint64_t number, FlightRecord* record, FlightId* id) const;

 private:
  static constexpr size_t kRecordWords = sizeof(FlightRecord) / 8;
  static constexpr size_t kWords = kRecordWords + sizeof(FlightId) / 8;
  using Word = std::atomic<uint64_t>;
  // A sequence lock: `sequence` is odd while the record is written, and else tells which it is.
  struct Slot {
    Word sequence{0};
    std::array<Word, kWords> words = {};
  };

  std::unique_ptr<Slot[]> slots_;
  std::atomic<uint64_t> written_{0};
};

// Thread-safe.
class FlightRecorder {
 public:
  // Where a reader is in each ring.
  struct Cursor {
    std::vector<uint64_t> next;  // by ring
    uint64_t missed = 0;         // records that were overwritten before they were read
  };
  using Visit = absl::FunctionRef<void(const FlightRecord&, absl::string_view id)>;

  FlightRecorder();
  FlightRecorder(const FlightRecorder&) = delete;

  // Into the ring of the calling thread.
  void Add(const FlightRecord& record, absl::string_view id) { RingOfThread()->Write(record, id); }

  // Visits what was added since the last call with this cursor, ring by ring.
  void ReadNew(Cursor* cursor, Visit visit) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Visits all that is there.
  void ReadAll(Visit visit) const;

 private:
  // A ring, and whether a thread that lives writes to it.
  struct Lane {
    FlightRing ring;
    std::atomic<bool> taken{true};
  };
  struct OfThread;

  FlightRing* RingOfThread();
  std::shared_ptr<Lane> TakeLane() ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<std::shared_ptr<Lane>> Lanes() const ABSL_LOCKS_EXCLUDED(mutex_);

  const uint64_t number_;  // which recorder of the process this is
  mutable threading::Mutex mutex_;
  std::vector<std::shared_ptr<Lane>> lanes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tilewire::service

#endif  // SERVICE_OBSERVE_FLIGHT_RECORD_H_
