// SPDX-License-Identifier: Apache-2.0
//
// Arrays cut into blocks, which a team shares. Immutable.
#ifndef ENGINE_TRAINING_BLOCKS_H_
#define ENGINE_TRAINING_BLOCKS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "engine/base/checked_math.h"
#include "engine/threading/arena.h"

namespace tilewire::training {

class Blocks {
 public:
  static constexpr int64_t kElements = 16384;

  // The elements of each array.
  explicit Blocks(absl::Span<const int64_t> sizes) : sizes_(sizes.begin(), sizes.end()) {
    for (int64_t size : sizes_) begins_.push_back(begins_.back() + DivUp(size, kElements));
  }

  int64_t count() const { return begins_.back(); }
  // The number of the first block of an array; of the array after the last, count().
  int64_t BeginOf(size_t array) const { return begins_[array]; }

  // Calls body(block, array, first, count) for each block, on several threads at once.
  template <typename Body>
  void ForEach(const threading::Team& team, const Body& body) const {
    team.ParallelFor(count(), [&](int64_t block) {
      const auto after = std::upper_bound(begins_.begin(), begins_.end(), block);
      const size_t array = after - begins_.begin() - 1;
      const int64_t first = (block - begins_[array]) * kElements;
      body(block, array, first, std::min(kElements, sizes_[array] - first));
    });
  }

 private:
  const std::vector<int64_t> sizes_;
  std::vector<int64_t> begins_ = {0};
};

}  // namespace tilewire::training

#endif  // ENGINE_TRAINING_BLOCKS_H_
