// SPDX-License-Identifier: Apache-2.0
//
// How long work of a kind takes: a mean that follows the last runs. Thread-compatible.
#ifndef SERVICE_SCHEDULE_COST_H_
#define SERVICE_SCHEDULE_COST_H_

#include <cstdint>

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

 private:
  struct Cost {
    absl::Duration mean;
    bool first = true;
  };
  absl::flat_hash_map<uint64_t, Cost> costs_;
};

}  // namespace tilewire::service

#endif  // SERVICE_SCHEDULE_COST_H_
