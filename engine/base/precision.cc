// SPDX-License-Identifier: Apache-2.0
#include "engine/base/precision.h"

#include "absl/strings/str_cat.h"

namespace tilewire {

absl::string_view PrecisionName(Precision precision) {
  switch (precision) {
    case Precision::kExact:
      return "exact";
    case Precision::kFast:
      return "fast";
    case Precision::kBf16:
      return "bf16";
  }
  return "unknown";
}

absl::StatusOr<Precision> ParsePrecision(absl::string_view name) {
  for (const Precision precision : {Precision::kExact, Precision::kFast, Precision::kBf16})
    if (name == PrecisionName(precision)) return precision;
  return absl::InvalidArgumentError(
      absl::StrCat("unknown precision '", name, "'; allowed are: exact, fast, bf16"));
}

}  // namespace tilewire
