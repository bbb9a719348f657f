// SPDX-License-Identifier: Apache-2.0
#include "client/training/example_order.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tilewire::client {
namespace {

// The generator and its seeding are defined by the standard, bit for bit; std::shuffle is not.
std::mt19937_64 GeneratorOf(uint64_t seed, uint64_t epoch) {
  std::seed_seq words{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32),
                      static_cast<uint32_t>(epoch), static_cast<uint32_t>(epoch >> 32)};
  return std::mt19937_64(words);
}

// Each number below `bound` is as likely as the others.
uint64_t Below(uint64_t bound, std::mt19937_64* random) {
  const uint64_t rest = (UINT64_MAX % bound + 1) % bound;  // of 2^64 by the bound
  uint64_t drawn = (*random)();
  while (drawn > UINT64_MAX - rest) drawn = (*random)();
  return drawn % bound;
}

void Shuffle(std::vector<int64_t>* order, std::mt19937_64 random) {
  for (size_t left = order->size(); left > 1; --left)
    std::swap((*order)[left - 1], (*order)[Below(left, &random)]);
}

}  // namespace

absl::Status CheckHoldOut(double hold_out) {
  if (hold_out >= 0 && hold_out < 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--hold_out=", hold_out, " is not a share from 0 to below 1"));
}

absl::StatusOr<ExampleOrder> ExampleOrder::Create(int64_t count, double hold_out, uint64_t seed) {
  if (absl::Status status = CheckHoldOut(hold_out); !status.ok()) return status;
  const int64_t held = std::llround(hold_out * static_cast<double>(count));
  if ((hold_out > 0 && held == 0) || held >= count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--hold_out=", hold_out, " of ", count, " examples holds out ", held, " and leaves ",
        count - held, "; at least one must be held out, and one be left to train on"));
  }
  ExampleOrder order;
  order.seed_ = seed;
  std::vector<int64_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  Shuffle(&all, GeneratorOf(seed, 0));
  order.held_out_.assign(all.begin(), all.begin() + held);
  order.trained_.assign(all.begin() + held, all.end());
  std::sort(order.held_out_.begin(), order.held_out_.end());
  std::sort(order.trained_.begin(), order.trained_.end());
  return order;
}

std::vector<int64_t> ExampleOrder::OfEpoch(int64_t epoch) const {
  std::vector<int64_t> order = trained_;
  Shuffle(&order, GeneratorOf(seed_, static_cast<uint64_t>(epoch)));
  return order;
}

std::vector<absl::Span<const int64_t>> Batches(absl::Span<const int64_t> examples, int64_t size) {
  std::vector<absl::Span<const int64_t>> batches;
  for (size_t first = 0; first < examples.size(); first += size)
    batches.push_back(examples.subspan(first, size));
  return batches;
}

}  // namespace tilewire::client
