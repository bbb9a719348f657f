// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/refusals.h"

#include "absl/strings/str_cat.h"

namespace tilewire::runtime {

std::string RefusalsText(const Primitive& primitive) {
  std::string reasons;
  for (const Refusal& refusal : primitive.info().creation.refusals) {
    absl::StrAppend(&reasons, reasons.empty() ? "" : "; ", refusal.name, ": ", refusal.reason);
  }
  return reasons.empty() ? "there is no other" : reasons;
}

}  // namespace tilewire::runtime
