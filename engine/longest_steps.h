// SPDX-License-Identifier: Apache-2.0
//
// The steps of one run that took longest, with when they began. A value of a fixed size: adding a
// step takes no memory. Thread-compatible.
#ifndef ENGINE_LONGEST_STEPS_H_
#define ENGINE_LONGEST_STEPS_H_

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace tilewire {

class LongestSteps {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kMost = 5;
  static constexpr size_t kNameBytes = 48;

  struct Step {
    std::array<char, kNameBytes> node = {};  // the beginning of its name; zeros after it
    Clock::time_point start;
    Clock::duration time{0};

    absl::string_view name() const {
      const auto end = std::find(node.begin(), node.end(), '\0');
      return {node.data(), static_cast<size_t>(end - node.begin())};
    }
  };

  // Keeps the step if fewer than kMost of those before it took as long.
  void Add(absl::string_view node, Clock::time_point start, Clock::duration time) {
    Step* place = &steps_[count_ < kMost ? count_ : 0];
    if (count_ < kMost) {
      ++count_;
    } else {
      place = std::min_element(steps_.begin(), steps_.end(),
                               [](const Step& a, const Step& b) { return a.time < b.time; });
      if (place->time >= time) return;
    }
    *place = {.start = start, .time = time};
    std::copy_n(node.begin(), std::min(node.size(), kNameBytes), place->node.begin());
  }

  // In no order.
  absl::Span<const Step> steps() const { return {steps_.data(), count_}; }

 private:
  std::array<Step, kMost> steps_;
  size_t count_ = 0;
};

}  // namespace tilewire

#endif  // ENGINE_LONGEST_STEPS_H_
