// SPDX-License-Identifier: Apache-2.0
//
// The field `workspace` of descriptors: what is taken for it, and each message (A16, S06).
#include "engine/primitives/workspace.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {
namespace {

TEST(WorkspaceTest, IsThatOfForwardTrainingOfTheSameProblem) {
  const MemoryDesc none;
  const MemoryDesc saved = MakeWorkspace("places", "2x2", 64);
  const MemoryDesc other = MakeWorkspace("places", "3x3", 64);
  struct Case {
    PropKind prop_kind;
    const MemoryDesc &workspace, &saved;
    const char* message;  // empty: OK
  };
  const Case cases[] = {
      {PropKind::kForwardInference, none, none, ""},
      {PropKind::kForwardTraining, none, saved, ""},
      {PropKind::kForwardTraining, saved, saved, "given to forward_training"},
      {PropKind::kForwardInference, saved, none, "given to forward_inference"},
      {PropKind::kBackwardData, saved, saved, ""},
      {PropKind::kBackward, none, none, ""},
      {PropKind::kBackwardData, none, saved, "has to run as forward_training"},
      {PropKind::kBackwardData, saved, none, "forward saves none here"},
      {PropKind::kBackwardData, other, saved, "of another problem"},
      {PropKind::kBackwardData, other, saved, "it depends on the kernel"},
  };
  for (const Case& one : cases) {
    const absl::Status status =
        CheckWorkspace("pooling", one.prop_kind, one.workspace, one.saved, "the kernel");
    if (*one.message == '\0') {
      EXPECT_THAT(status, IsOk());
      continue;
    }
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, one.message));
    EXPECT_THAT(std::string(status.message()), ::testing::StartsWith("pooling: "));
  }
}

TEST(WorkspaceTest, OneFormatOfOneProblemHasOneTag) {
  EXPECT_EQ(MakeWorkspace("places", "2x2", 64), MakeWorkspace("places", "2x2", 64));
  EXPECT_FALSE(MakeWorkspace("places", "2x2", 64) == MakeWorkspace("bits", "2x2", 64));
  EXPECT_FALSE(MakeWorkspace("places", "2x2", 64) == MakeWorkspace("places", "2x2", 32));
}

}  // namespace
}  // namespace tilewire::testing
