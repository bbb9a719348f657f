// SPDX-License-Identifier: Apache-2.0
//
// Makes an absl::Status, whose message absl::StrCat() joins, and returns early with one:
//
//   if (rank > most) return InvalidArgument("rank ", rank, ", at most ", most);
//   ABSL_RETURN_IF_ERROR(DoIt());
//   ABSL_ASSIGN_OR_RETURN(Thing thing, MakeThing());
//
// The macros' names are those of newer Abseil; Debian 12's has none.
#ifndef ENGINE_BASE_STATUS_MACROS_H_
#define ENGINE_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#define TILEWIRE_CONCAT_INNER(a, b) a##b
#define TILEWIRE_CONCAT(a, b) TILEWIRE_CONCAT_INNER(a, b)

#define ABSL_RETURN_IF_ERROR(expression) \
  if (absl::Status tilewire_status = (expression); !tilewire_status.ok()) return tilewire_status

#define ABSL_ASSIGN_OR_RETURN(declaration, expression) \
  TILEWIRE_ASSIGN_OR_RETURN(TILEWIRE_CONCAT(status_or_, __LINE__), declaration, expression)

#define TILEWIRE_ASSIGN_OR_RETURN(status_or, declaration, expression) \
  auto status_or = (expression);                                      \
  if (!status_or.ok()) return std::move(status_or).status();          \
  declaration = *std::move(status_or)

namespace tilewire {

template <typename... Parts>
absl::Status InvalidArgument(const Parts&... message) {
  return absl::InvalidArgumentError(absl::StrCat(message...));
}
template <typename... Parts>
absl::Status Unimplemented(const Parts&... message) {
  return absl::UnimplementedError(absl::StrCat(message...));
}
template <typename... Parts>
absl::Status ResourceExhausted(const Parts&... message) {
  return absl::ResourceExhaustedError(absl::StrCat(message...));
}
template <typename... Parts>
absl::Status Internal(const Parts&... message) {
  return absl::InternalError(absl::StrCat(message...));
}

}  // namespace tilewire

#endif  // ENGINE_BASE_STATUS_MACROS_H_
