// SPDX-License-Identifier: Apache-2.0
//
// Matchers for absl::Status and absl::StatusOr<T> (Debian 12's Abseil has none):
//
//   EXPECT_THAT(status, IsOk());
//   EXPECT_THAT(MakeThing(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("rank")));
//   ASSERT_OK_AND_ASSIGN(Thing thing, MakeThing());
#ifndef TESTS_SUPPORT_STATUS_MATCHERS_H_
#define TESTS_SUPPORT_STATUS_MATCHERS_H_

#include <gmock/gmock.h>

#include <ostream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/status_macros.h"

namespace tilewire::testing {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& status_or) {
  return status_or.status();
}

MATCHER(IsOk, negation ? "is not OK" : "is OK") {
  *result_listener << "which is " << StatusOf(arg).ToString();
  return StatusOf(arg).ok();
}

MATCHER_P2(StatusMatches, code, message_matcher,
           "has code " + absl::StatusCodeToString(code) + " and a message that " +
               ::testing::DescribeMatcher<std::string>(message_matcher, negation)) {
  const absl::Status& status = StatusOf(arg);
  *result_listener << "which is " << status.ToString();
  return status.code() == code &&
         ::testing::ExplainMatchResult(message_matcher, std::string(status.message()),
                                       result_listener);
}

// `message` is a matcher, or text that the message must contain.
template <typename M>
auto StatusIs(absl::StatusCode code, M message) {
  return StatusMatches(code, ::testing::SafeMatcherCast<std::string>(message));
}
inline auto StatusIs(absl::StatusCode code, const char* substring) {
  return StatusIs(code, ::testing::HasSubstr(substring));
}
inline auto StatusIs(absl::StatusCode code) { return StatusIs(code, ::testing::_); }

}  // namespace tilewire::testing

#define ASSERT_OK_AND_ASSIGN(declaration, expression) \
  TILEWIRE_ASSERT_OK_AND_ASSIGN(TILEWIRE_CONCAT(status_or_, __LINE__), declaration, expression)

#define TILEWIRE_ASSERT_OK_AND_ASSIGN(status_or, declaration, expression) \
  auto status_or = (expression);                                          \
  ASSERT_TRUE(status_or.ok()) << status_or.status();                      \
  declaration = *std::move(status_or)

#endif  // TESTS_SUPPORT_STATUS_MATCHERS_H_
