// SPDX-License-Identifier: Apache-2.0
#include "service/front/method_table.h"

#include "absl/strings/str_cat.h"

namespace tilewire::service {

absl::string_view RightName(Right right) {
  switch (right) {
    case Right::kHealth:
      return "health";
    case Right::kMetadata:
      return "metadata";
    case Right::kInfer:
      return "infer";
    case Right::kStatistics:
      return "statistics";
    case Right::kExplain:
      return "explain";
    case Right::kPrimitives:
      return "primitives";
    case Right::kRepository:
      return "repository";
    case Right::kSettings:
      return "settings";
    case Right::kReflection:
      break;
  }
  return "reflection";
}

absl::Status CheckRight(absl::string_view what, Right right, const OpenRights& open) {
  if (open.Has(right)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat(what, " takes the right '", RightName(right),
                   "', which this server does not open to clients (--open_rights)"));
}

absl::Status CheckRequestBytes(const Method& method, int64_t bytes, int64_t max_message_bytes) {
  const int64_t most = MostRequestBytes(method, max_message_bytes);
  if (bytes <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the request of ", method.rpc, " has ", bytes,
                                                 " bytes; at most ", most, " are allowed"));
}

}  // namespace tilewire::service
