// SPDX-License-Identifier: Apache-2.0
//
// How long work of a kind takes: a mean that follows the last runs. Thread-compatible.
#ifndef SERVICE_SCHEDULE_COST_H_
#define SERVICE_SCHEDULE_COST_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"

namespace tilewire::service {

class CostTable {
 public:
  // Zero for a key that is empty or was never recorded.
  absl::Duration Expected(const std::string& key) const;
  // The second run of a key replaces the first, which may have compiled what it ran.
  void Record(const std::string& key, absl::Duration taken);

 private:
  struct Cost {
    absl::Duration mean;
    bool first = true;
  };
  absl::flat_hash_map<std::string, Cost> costs_;
};

}  // namespace tilewire::service

#endif  // SERVICE_SCHEDULE_COST_H_
