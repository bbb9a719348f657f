// SPDX-License-Identifier: Apache-2.0
#include "service/observe/trace_context.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

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

}  // namespace

// A later version may add fields after the flags.
TraceContext ParseTraceParent(absl::string_view header) {
  if (header.size() > 256) return {};
  const std::vector<absl::string_view> fields = absl::StrSplit(header, '-');
  if (fields.size() < 4) return {};
  const absl::string_view version = fields[0], trace = fields[1], parent = fields[2];
  const absl::string_view flags = fields[3];
  if (!IsHex(version, 2) || version == "ff" || (version == "00" && fields.size() > 4)) return {};
  if (!IsHex(trace, 32) || IsZero(trace) || !IsHex(parent, 16) || IsZero(parent)) return {};
  if (!IsHex(flags, 2)) return {};
  return {std::string(trace), std::string(parent), (ValueOf(flags[1]) & 1) != 0};
}

}  // namespace tilewire::service
