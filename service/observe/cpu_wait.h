// SPDX-License-Identifier: Apache-2.0
//
// How long the threads that run requests could have run and waited for a CPU that other processes,
// or other threads of this one, had: the run delay that /proc/self/task/*/schedstat tells of each.
// With it the pressure of the machine, where /proc/pressure/cpu tells it. Thread-compatible.
#ifndef SERVICE_OBSERVE_CPU_WAIT_H_
#define SERVICE_OBSERVE_CPU_WAIT_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

namespace tilewire::service {

class CpuWait {
 public:
  static constexpr int64_t kBetweenLooksNs = 1'000'000'000;
  static constexpr int64_t kMinuteNs = 60 * kBetweenLooksNs;

  struct Sums {
    int64_t waited_ns = 0;  // since the first look; 0 where the system does not tell it
    // The part of the time in the last minute in which the threads could run, that they waited.
    // Nothing where it is not known, or where they hardly ran.
    std::optional<double> share;
    // The part of the last minute in which some process of the machine waited for a CPU.
    std::optional<double> pressure;
  };

  // The files of Linux are read below `root`.
  explicit CpuWait(const std::string& root = "") : root_(root) {}

  // Reads the files, if the last look was at least kBetweenLooksNs before `now_ns`.
  void Look(int64_t now_ns);
  const Sums& sums() const { return sums_; }

 private:
  struct Times {
    int64_t ran_ns = 0, waited_ns = 0;
  };
  struct Task {
    bool runs_requests = false;
    Times last;
  };
  struct Seen {
    int64_t at_ns = 0;
    Times all;
  };

  void ReadTasks();

  const std::string root_;
  std::map<std::string, Task> tasks_;  // by number
  Times all_;                          // since the first look
  std::deque<Seen> looks_;             // of the last minute, ascending
  Sums sums_;
};

}  // namespace tilewire::service

#endif  // SERVICE_OBSERVE_CPU_WAIT_H_
