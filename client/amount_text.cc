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
  for (char& c : text) {
    if (absl::ascii_iscntrl(c)) c = '?';
  }
  return text;
}

}  // namespace tilewire::client
