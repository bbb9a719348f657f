// SPDX-License-Identifier: Apache-2.0
#include "client/amount_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/text_width.h"

namespace tilewire::client {
namespace {

std::string InThousands(int64_t number) {
  if (number < 1000) return absl::StrCat(number);
  return absl::StrCat(InThousands(number / 1000), ",", absl::Dec(number % 1000, absl::kZeroPad3));
}

// Whether a terminal does something at the character, other than to show it.
bool IsObeyed(char32_t code) {
  const bool is_control = code < 0x20 || (code >= 0x7F && code < 0xA0);
  const bool is_line_or_direction = (code >= 0x2028 && code <= 0x202E) || code == 0x061C ||
                                    code == 0x200E || code == 0x200F ||
                                    (code >= 0x2066 && code <= 0x2069);
  const bool is_hidden = code == 0x200B || (code >= 0x2060 && code <= 0x2064) || code == 0xFEFF;
  return is_control || is_line_or_direction || is_hidden;
}

}  // namespace

std::string BytesText(int64_t bytes) {
  static constexpr struct {
    double bytes;
    const char* unit;
  } kByteUnits[] = {{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}};
  for (const auto& [size, unit] : kByteUnits) {
    // A value that would be rounded to 1000 of a unit belongs to the next one.
    const double value = static_cast<double>(bytes) / size;
    if (value < 0.9995) continue;
    return absl::StrFormat("%.*f %s", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value, unit);
  }
  return absl::StrCat(bytes, " B");
}

std::string CountText(int64_t count, absl::string_view what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

std::string CyclesText(double cycles) {
  return absl::StrCat(InThousands(static_cast<int64_t>(cycles)), " cycles");
}

std::string RateText(double per_second) {
  if (per_second >= 1000) return absl::StrFormat("%.0f", per_second);
  // Never an exponent: rates begin at a thousandth.
  return absl::StrFormat("%.4g", per_second);
}

std::string ShownText(absl::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const Character character = FirstCharacter(text);
    absl::StrAppend(&shown, IsObeyed(character.code) ? "?" : text.substr(0, character.bytes));
    text.remove_prefix(character.bytes);
  }
  return shown;
}

}  // namespace tilewire::client
