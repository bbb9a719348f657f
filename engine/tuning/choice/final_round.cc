// SPDX-License-Identifier: Apache-2.0
#include "engine/tuning/choice/final_round.h"

#include "absl/time/time.h"
#include "engine/base/check.h"

namespace tilewire::tuning {

size_t FastestOf(absl::Span<const Finalist> finalists) {
  absl::Duration least = absl::InfiniteDuration();
  for (const Finalist& one : finalists) {
    if (one.is_sure && one.time < least) least = one.time;
  }
  std::optional<size_t> taken;
  for (size_t i = 0; i < finalists.size(); ++i) {
    if (!finalists[i].is_sure || finalists[i].time > least * kAsFast) continue;
    if (!taken || finalists[i].l2 < finalists[*taken].l2) taken = i;
  }
  TILEWIRE_CHECK(taken.has_value(), "one of the finalists surely keeps the budget");
  return *taken;
}

std::optional<size_t> BolderThan(absl::Span<const Finalist> finalists, size_t taken) {
  std::optional<size_t> bolder;
  for (size_t i = 0; i < finalists.size(); ++i) {
    const Finalist& one = finalists[i];
    if (one.is_sure) continue;
    if (one.time * kWorthACheck > finalists[taken].time) continue;
    if (!bolder || one.time < finalists[*bolder].time) bolder = i;
  }
  return bolder;
}

}  // namespace tilewire::tuning
