// SPDX-License-Identifier: Apache-2.0
//
// The averages of a trainer's parameters, in the layouts of the store. Thread-compatible.
#ifndef ENGINE_FACADE_PARAMETER_AVERAGES_H_
#define ENGINE_FACADE_PARAMETER_AVERAGES_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/base/aligned_buffer.h"
#include "engine/runtime/parameter_store.h"
#include "engine/threading/arena.h"

namespace tilewire {

class ParameterAverages {
 public:
  // `decay` as TrainingSpec::average; 0: there are none, and nothing is done. The store outlives
  // this.
  ParameterAverages(double decay, runtime::ParameterStore* store) : decay_(decay), store_(*store) {}

  // Begins averages of the parameters with these indices that have none, by their values.
  //   kResourceExhausted  memory
  absl::Status Keep(absl::Span<const int> indices);
  // After step 1, 2, ... of the optimizer.
  void Move(int64_t step, const threading::Team& team);
  // Exchanges the averages and the values in the store.
  void Exchange();

 private:
  const double decay_;
  runtime::ParameterStore& store_;
  absl::flat_hash_map<int, AlignedBuffer> averages_;  // by the store's indices
};

// Has the averages in the place of the values as long as it lives.
class AveragesInPlace {
 public:
  explicit AveragesInPlace(ParameterAverages* averages) : averages_(*averages) {
    averages_.Exchange();
  }
  ~AveragesInPlace() { averages_.Exchange(); }
  AveragesInPlace(const AveragesInPlace&) = delete;

 private:
  ParameterAverages& averages_;
};

}  // namespace tilewire

#endif  // ENGINE_FACADE_PARAMETER_AVERAGES_H_
