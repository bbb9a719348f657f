// SPDX-License-Identifier: Apache-2.0
#include "client/amount_text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tilewire::client {
namespace {

std::string InThousands(int64_t number) {
  if (number < 1000) return absl::StrCat(number);
  return absl::StrCat(InThousands(number / 1000), ",", absl::Dec(number % 1000, absl::kZeroPad3));
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

std::string ShownText(std::string text) {
  size_t end = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    const bool is_long = byte == 0xC2 && next >= 0x80 && next < 0xA0;  // U+0080 to U+009F
    text[end++] = is_long || absl::ascii_iscntrl(byte) ? '?' : text[i];
    if (is_long) ++i;
  }
  text.resize(end);
  return text;
}

}  // namespace tilewire::client
