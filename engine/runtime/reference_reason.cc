// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/reference_reason.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tilewire::runtime {
namespace {

constexpr absl::string_view kReference = "/reference";

// The messages of CreateFirst() are "no implementation takes ...; NAME: REASON".
absl::string_view WithoutPreamble(absl::string_view message) {
  const size_t end = message.find("; ");
  return end == absl::string_view::npos ? message : message.substr(end + 2);
}

}  // namespace

bool IsReference(const Primitive& primitive) {
  return absl::EndsWith(primitive.name(), kReference);
}

std::string WhyReference(const OpDesc& desc, const Attributes& attributes,
                         const CreateOptions& options) {
  std::string reasons;
  for (const ImplementationRow& row : AllImplementations()) {
    if (row.kind != KindOf(desc) || absl::EndsWith(row.name, kReference)) continue;
    CreateOptions only_this = options;
    only_this.only = row.name;
    const absl::Status status = CreatePrimitive(desc, attributes, only_this).status();
    if (status.ok()) continue;
    absl::StrAppend(&reasons, reasons.empty() ? "" : "; ", WithoutPreamble(status.message()));
  }
  return reasons.empty() ? "there is no other" : reasons;
}

}  // namespace tilewire::runtime
