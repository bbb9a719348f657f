// SPDX-License-Identifier: Apache-2.0
//
// How long the process's control groups held its threads back because the CPU time of a period was
// used up, as `cpu.stat` tells it (v1 and v2). Thread-compatible.
#ifndef SERVICE_OBSERVE_CPU_THROTTLING_H_
#define SERVICE_OBSERVE_CPU_THROTTLING_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace tilewire::service {

class CpuThrottling {
 public:
  // The files of Linux are read below `root`. Without control groups that tell it, nothing is ever
  // throttled.
  explicit CpuThrottling(const std::string& root = "");

  // Reads the files, if the last look was at least kBetweenLooksNs before `now_ns`.
  void Look(int64_t now_ns);

  // The sum of all looks, of all cores together, in the group that was held back most.
  int64_t total_ns() const { return looks_.empty() ? 0 : looks_.back().total_ns; }

  // The time that was added between the last look up to `begin_ns` and the first one from `end_ns`
  // on: at least what was lost between the two, as far as looks go back.
  int64_t Between(int64_t begin_ns, int64_t end_ns) const;

  static constexpr int64_t kBetweenLooksNs = 250'000'000;

 private:
  static constexpr size_t kLooks = 512;
  struct File {
    std::string path;
    bool in_ns = false;  // else in microseconds
    int64_t last_ns = 0;
  };
  struct Seen {
    int64_t at_ns = 0, total_ns = 0;
  };

  std::vector<File> files_;
  std::deque<Seen> looks_;  // ascending
};

}  // namespace tilewire::service

#endif  // SERVICE_OBSERVE_CPU_THROTTLING_H_
