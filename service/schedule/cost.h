// SPDX-License-Identifier: Apache-2.0
//
// How long work of a kind takes: a mean that follows the last runs. Work of a kind that has never
// run is judged by its operations, at the rate of its model's other runs. Thread-compatible.
#ifndef SERVICE_SCHEDULE_COST_H_
#define SERVICE_SCHEDULE_COST_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"

namespace tilewire::service {

class CostTable {
 public:
  // Zero for a key that is 0 or was never recorded.
  absl::Duration Expected(uint64_t key) const;
  // The second run of a key replaces the first, which may have compiled what it ran. A run that
  // takes much longer than those before it, because something else held the cores, counts as twice
  // their mean.
  void Record(uint64_t key, absl::Duration taken);

  // The time of `operations` of a model at the best rate of its last runs, rather too short than
  // too long: more than 64 times the operations of that run count as 64 times. Zero if the model
  // has not run, or its operations are unknown (0).
  absl::Duration AtItsRate(const std::string& model, int64_t operations) const;
  void RecordRate(const std::string& model, int64_t operations, absl::Duration taken);

 private:
  struct Cost {
    absl::Duration mean;
    bool first = true;
  };
  struct Rate {
    double per_second = 0;
    int64_t operations = 0;  // of the run that had it
  };
  absl::flat_hash_map<uint64_t, Cost> costs_;
  absl::flat_hash_map<std::string, Rate> rates_;
};

}  // namespace tilewire::service

#endif  // SERVICE_SCHEDULE_COST_H_
