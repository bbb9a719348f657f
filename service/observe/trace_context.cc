// SPDX-License-Identifier: Apache-2.0
#include "service/observe/trace_context.h"

#include <algorithm>
#include <cstddef>

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

// The text up to the next '-', which it takes off the header too.
absl::string_view NextField(absl::string_view* header) {
  const absl::string_view field = header->substr(0, header->find('-'));
  header->remove_prefix(std::min(header->size(), field.size() + 1));
  return field;
}

}  // namespace

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
