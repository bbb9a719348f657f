// SPDX-License-Identifier: Apache-2.0
//
// Which examples are held out, and in which order the others are trained on. Both depend on the
// number of examples, the share, the seed and the epoch, and on nothing else: the same on every
// machine. Thread-compatible.
#ifndef CLIENT_TRAINING_EXAMPLE_ORDER_H_
#define CLIENT_TRAINING_EXAMPLE_ORDER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace tilewire::client {

// kInvalidArgument: the share of --hold_out is outside [0, 1).
absl::Status CheckHoldOut(double hold_out);

class ExampleOrder {
 public:
  // `hold_out` of `count` examples, to the nearest number of them, are held out.
  //   kInvalidArgument  a share outside [0, 1), one that is not 0 and holds out none, or all
  static absl::StatusOr<ExampleOrder> Create(int64_t count, double hold_out, uint64_t seed);

  const std::vector<int64_t>& held_out() const { return held_out_; }  // ascending
  int64_t trained_count() const { return static_cast<int64_t>(trained_.size()); }
  // Each example that is not held out once, shuffled anew. Epochs count from 1.
  std::vector<int64_t> OfEpoch(int64_t epoch) const;

 private:
  uint64_t seed_ = 0;
  std::vector<int64_t> held_out_, trained_;
};

// Runs of `size` examples that follow each other; the last one has what is left. `size` > 0.
std::vector<absl::Span<const int64_t>> Batches(absl::Span<const int64_t> examples, int64_t size);

}  // namespace tilewire::client

#endif  // CLIENT_TRAINING_EXAMPLE_ORDER_H_
