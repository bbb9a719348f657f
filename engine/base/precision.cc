// SPDX-License-Identifier: Apache-2.0
#include "engine/base/precision.h"

#include "absl/strings/str_join.h"
#include "engine/base/status_macros.h"

namespace tilewire {
namespace {

constexpr absl::string_view kNames[] = {"exact", "fast", "bf16"};

}  // namespace

absl::string_view PrecisionName(Precision precision) { return kNames[static_cast<int>(precision)]; }

absl::StatusOr<Precision> ParsePrecision(absl::string_view name) {
  for (const Precision precision : {Precision::kExact, Precision::kFast, Precision::kBf16})
    if (name == PrecisionName(precision)) return precision;
  return InvalidArgument("unknown precision '", name,
                         "'; allowed are: ", absl::StrJoin(kNames, ", "));
}

}  // namespace tilewire
