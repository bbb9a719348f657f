// SPDX-License-Identifier: Apache-2.0
//
// Philox 4x32-10: random words that are a function of a key and a counter, so that any of them is
// computed by itself, in any order and on any thread. Ten rounds of
//
//   c0, c1, c2, c3 <- high(M1 c2) ^ c1 ^ k0, low(M1 c2), high(M0 c0) ^ c3 ^ k1, low(M0 c0)
//
// and the key grows by W0, W1 after each. Source: Salmon et al., "Parallel random numbers: as easy
// as 1, 2, 3", SC 2011. Pure; thread-safe.
#ifndef ENGINE_TRAINING_PHILOX_H_
#define ENGINE_TRAINING_PHILOX_H_

#include <array>
#include <cstdint>

namespace tilewire::training {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

constexpr PhiloxCounter Philox(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = uint64_t{0xD2511F53} * counter[0];
    const uint64_t second = uint64_t{0xCD9E8D57} * counter[2];
    counter = {
        static_cast<uint32_t>(second >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(second),
        static_cast<uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(first)};
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  return counter;
}

}  // namespace tilewire::training

#endif  // ENGINE_TRAINING_PHILOX_H_
