// SPDX-License-Identifier: Apache-2.0
//
// Lets libFuzzer see which branches code takes that GCC compiled. GCC calls a function per basic
// block (-fsanitize-coverage=trace-pc); libFuzzer reads a table of counters, as Clang's code has
// it. Comparisons have the same interface in both.
#include <array>
#include <cstddef>
#include <cstdint>

extern "C" {
void __sanitizer_cov_8bit_counters_init(uint8_t* begin, uint8_t* end);
void __sanitizer_cov_pcs_init(const uintptr_t* begin, const uintptr_t* end);
}

namespace {

// Two blocks share a counter now and then.
constexpr size_t kCounters = 1 << 16;

std::array<uint8_t, kCounters> counters;

// A block of the program, as libFuzzer sees it: an address and flags. It tells counters apart by
// these, and prints how many were reached.
struct Block {
  uintptr_t address, flags;
};
std::array<Block, kCounters> blocks;

const bool registered = [] {
  for (size_t i = 0; i < kCounters; ++i) blocks[i] = {i + 1, 0};
  __sanitizer_cov_8bit_counters_init(counters.data(), counters.data() + kCounters);
  __sanitizer_cov_pcs_init(&blocks[0].address, &blocks[0].address + 2 * kCounters);
  return true;
}();

}  // namespace

extern "C" void __sanitizer_cov_trace_pc() {
  const auto address = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  const size_t hash = static_cast<size_t>(address) * 0x9E3779B97F4A7C15u >> 48;
  ++counters[hash % kCounters];
}

// GCC reports comparisons of floating-point numbers too, which libFuzzer does not know.
extern "C" void __sanitizer_cov_trace_cmpf(float, float) {}
extern "C" void __sanitizer_cov_trace_cmpd(double, double) {}
