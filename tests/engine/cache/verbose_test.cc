// SPDX-License-Identifier: Apache-2.0
//
// The lines that TILEWIRE_VERBOSE asks for. It is read once per process, so that each case is a
// process.
#include "engine/primitives/verbose.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/base/diagnostics.h"
#include "engine/cache/primitive_cache.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tilewire::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ExitedWithCode;
using ::testing::HasSubstr;
using ::testing::Not;

MemoryDesc Image(Dims dims) {
  return MemoryDesc::CreatePattern(std::move(dims), DataType::kF32, "abcd").value();
}

OpDesc MaxPooling() {
  PoolingDesc desc;
  desc.src = Image({1, 3, 4, 4});
  desc.dst = Image({1, 3, 2, 2});
  desc.kernel = desc.strides = {2, 2};
  desc.padding_left = desc.padding_right = {0, 0};
  return desc;
}

OpDesc InvalidPooling() {
  PoolingDesc desc = std::get<PoolingDesc>(MaxPooling());
  desc.dst = Image({1, 3, 5, 5});
  return desc;
}

// With this level: a pooling is created twice and executed once, another cannot be created.
[[noreturn]] void RunWith(const char* level) {
  setenv("TILEWIRE_VERBOSE", level, /*overwrite=*/1);
  PrimitiveCache cache(1 << 20);
  Attributes attributes;
  attributes.scratchpad_mode = ScratchpadMode::kUser;
  const CreateOptions baseline = {.max_isa = cpu::Isa::kBaseline, .only = {}};
  const auto found = cache.GetOrCreate(MaxPooling(), attributes, baseline);
  if (!found.ok()) std::exit(1);
  if (!cache.GetOrCreate(MaxPooling(), attributes, baseline)->hit) std::exit(2);
  if (cache.GetOrCreate(InvalidPooling(), attributes, baseline).ok()) std::exit(3);
  alignas(64) float src[48] = {}, dst[12];
  ExecuteArgs args;
  args.Set(kArgSrc, src).Set(kArgDst, dst);
  const VerboseNode named("/layer1/Pool, the\x1B[2J first");
  std::exit(found->primitive->Execute(args, threading::Team::Serial()).ok() ? 0 : 4);
}

class VerboseTest : public ::testing::Test {
 protected:
  VerboseTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }  // a new process
};

constexpr char kExecution[] =
    "tilewire,20[0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]\\.[0-9]{6}Z,"
    "execute,pooling/reference,forward_inference,src f32:1x3x4x4:nchw dst "
    "f32:1x3x2x2:nchw,scratchpad:user,algorithm:max kernel:2x2 strides:2x2 padding_left:0x0 "
    "padding_right:0x0,/layer1/Pool; the.x1b.2J first,[0-9]+\\.[0-9]+ ms\n";

TEST_F(VerboseTest, Level0SaysNothing) {
  EXPECT_EXIT(RunWith("0"), ExitedWithCode(0), Not(HasSubstr("tilewire,")));
}

TEST_F(VerboseTest, Level1SaysWhoExecutedWhatAndOnWhich) {
  EXPECT_EXIT(RunWith("1"), ExitedWithCode(0),
              AllOf(HasSubstr(absl::StrCat("Z,info,cpu ", cpu::IsaName(cpu::BestIsa()))),
                    ContainsRegex(kExecution), Not(HasSubstr("create:"))));
}

// C05.
TEST_F(VerboseTest, Level2SaysHitMissAndWhyBetterOnesRefused) {
  EXPECT_EXIT(
      RunWith("2"), ExitedWithCode(0),
      AllOf(ContainsRegex("Z,create:refused,pooling/avx2_f32,needs avx2\n"),
            ContainsRegex("Z,create:cache_miss,pooling/reference,forward_inference,src"),
            ContainsRegex("Z,create:cache_hit,pooling/reference,forward_inference,src"),
            ContainsRegex("Z,create:failed,pooling,[^,]*dst[^,]*\n"), ContainsRegex(kExecution)));
}

TEST_F(VerboseTest, OtherLevelsAreRefusedWithTheAllowedOnes) {
  for (absl::string_view text : {"3", "-1", "x", "1x", "99999999999"}) {
    const absl::Status status = ParseVerboseLevel(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(status.message(), HasSubstr("0, 1, 2"));
    EXPECT_THAT(status.message(), HasSubstr(absl::StrCat("'", text, "'")));
  }
  EXPECT_EQ(*ParseVerboseLevel(""), 0);
  EXPECT_EQ(*ParseVerboseLevel("2"), 2);
}

TEST_F(VerboseTest, AnInvalidLevelOfTheEnvironmentIsSilence) {
  EXPECT_EXIT(RunWith("7"), ExitedWithCode(0), Not(HasSubstr("tilewire,")));
}

}  // namespace
}  // namespace tilewire::testing
