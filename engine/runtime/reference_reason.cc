// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/reference_reason.h"

#include "absl/strings/str_cat.h"

namespace tilewire::runtime {

bool IsReference(const Primitive& primitive) { return primitive.info().traits.is_reference; }

std::string WhyReference(const Primitive& primitive) {
  std::string reasons;
  for (const Refusal& refusal : primitive.info().creation.refusals) {
    absl::StrAppend(&reasons, reasons.empty() ? "" : "; ", refusal.name, ": ", refusal.reason);
  }
  return reasons.empty() ? "there is no other" : reasons;
}

}  // namespace tilewire::runtime
