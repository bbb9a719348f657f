// SPDX-License-Identifier: Apache-2.0
#include "service/observe/trace_context.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <random>

#include "absl/strings/ascii.h"

namespace tilewire::service {
namespace {

// Lower-case hex digits of that count.
bool IsHex(absl::string_view text, size_t digits) {
  return text.size() == digits && std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
         });
}

bool IsZero(absl::string_view text) {
  return text.find_first_not_of('0') == absl::string_view::npos;
}

int ValueOf(char digit) { return absl::ascii_isdigit(digit) ? digit - '0' : digit - 'a' + 10; }

std::array<uint64_t, 2> SeedsOfSystem() {
  std::random_device system;
  const auto word = [&system] { return (uint64_t{system()} << 32) | system(); };
  return {word(), word()};
}

// Neighbouring numbers to distant ones, no two to the same (the last steps of SplitMix64).
uint64_t Scattered(uint64_t number) {
  number *= 0x9E3779B97F4A7C15;
  number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9;
  number = (number ^ (number >> 27)) * 0x94D049BB133111EB;
  return number ^ (number >> 31);
}

// The text up to the next '-', which it takes off the header too.
absl::string_view NextField(absl::string_view* header) {
  const absl::string_view field = header->substr(0, header->find('-'));
  header->remove_prefix(std::min(header->size(), field.size() + 1));
  return field;
}

}  // namespace

TraceId MadeTraceId() {
  static const std::array<uint64_t, 2> seeds = SeedsOfSystem();
  static std::atomic<uint64_t> made{0};
  const uint64_t number = made.fetch_add(1, std::memory_order_relaxed);
  TraceId id = {};
  for (size_t i = 0; i < seeds.size(); ++i) {
    const uint64_t word = Scattered(seeds[i] + number);
    std::memcpy(id.data() + i * sizeof(word), &word, sizeof(word));
  }
  id[0] |= 1;  // zeros stand for none
  return id;
}

// A later version may add fields after the flags.
TraceContext ParseTraceParent(absl::string_view header) {
  constexpr size_t kThisVersion = 55;
  if (header.size() < kThisVersion) return {};
  const size_t length = header.size();
  const absl::string_view version = NextField(&header), trace = NextField(&header);
  const absl::string_view parent = NextField(&header), flags = NextField(&header);
  if (!IsHex(version, 2) || version == "ff" || (version == "00" && length > kThisVersion)) {
    return {};
  }
  if (!IsHex(trace, 32) || IsZero(trace) || !IsHex(parent, 16) || IsZero(parent)) return {};
  if (!IsHex(flags, 2)) return {};
  return {trace, parent, (ValueOf(flags[1]) & 1) != 0};
}

void ReadHexDigits(absl::string_view digits, absl::Span<uint8_t> bytes) {
  const size_t pairs = std::min(bytes.size(), digits.size() / 2);
  for (size_t i = 0; i < pairs; ++i) {
    bytes[i] = static_cast<uint8_t>(16 * ValueOf(digits[2 * i]) + ValueOf(digits[2 * i + 1]));
  }
}

}  // namespace tilewire::service
