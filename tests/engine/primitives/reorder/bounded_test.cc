// SPDX-License-Identifier: Apache-2.0
//
// Weights of which a descriptor promises that they are small: the promise is looked at.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/primitives/reorder/reorder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/random_tensor.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {
namespace {

using ::testing::HasSubstr;
using threading::Team;

MemoryDesc Weights(const Dims& dims, absl::string_view pattern) {
  return *MemoryDesc::CreatePattern(dims, DataType::kS8, pattern);
}

// Copies by the reorder to `dst`, and by that to the same without the bound.
void ExpectSameBytes(const MemoryDesc& src, const MemoryDesc& dst) {
  SCOPED_TRACE(dst.ToString());
  std::vector<int8_t> weights(src.SizeBytes());
  FillIntegers(absl::MakeSpan(weights), 1, -64, 64);
  weights[src.Offset(Dims(src.rank(), 0))] = -64;
  std::vector<uint8_t> bytes(dst.SizeBytes(), 0xA5), plain(dst.SizeBytes(), 0xA5);
  ASSERT_OK_AND_ASSIGN(const auto bounded, CreateReorder({src, dst}, {}, {}));
  EXPECT_EQ(bounded->name(), "reorder/bounded");
  ASSERT_OK_AND_ASSIGN(const auto copy, CreateReorder({src, dst.WithoutBound()}, {}, {}));
  threading::Arena arena(2);
  ExecuteArgs args;
  args.Set(kArgSrc, weights.data());
  ASSERT_THAT(copy->Execute(args.Set(kArgDst, plain.data()), Team::Serial()), IsOk());
  ASSERT_THAT(bounded->Execute(args.Set(kArgDst, bytes.data()), Team(&arena)), IsOk());
  EXPECT_EQ(bytes, plain);
}

TEST(BoundedReorderTest, CopiesWhatKeepsTheBound) {
  const MemoryDesc packed = Weights({17, 20, 3, 3}, "ABcd4b16a4b");
  const MemoryDesc sparse =
      *MemoryDesc::CreateStrided({17, 20, 3, 3}, DataType::kS8, {400, 11, 3, 1});
  for (const MemoryDesc& src : {Weights({17, 20, 3, 3}, "abcd"), sparse, packed}) {
    ExpectSameBytes(src, *packed.WithBound(64));
    ExpectSameBytes(src, *packed.WithBound(64)->WithCompensation(1));
    ExpectSameBytes(src, *Weights({17, 20, 3, 3}, "abcd").WithBound(64));
  }
}

// A smaller bound of src is believed, a larger one is not.
TEST(BoundedReorderTest, LooksAtBoundedElementsOnlyForASmallerBound) {
  const MemoryDesc plain = Weights({17, 20, 3, 3}, "abcd"), dst = *plain.WithBound(64);
  ExpectSameBytes(*plain.WithBound(64), *Weights({17, 20, 3, 3}, "ABcd4b16a4b").WithBound(64));
  for (const auto& [bound, code] :
       {std::pair{63, absl::StatusCode::kOk}, std::pair{65, absl::StatusCode::kInvalidArgument}}) {
    ASSERT_OK_AND_ASSIGN(const auto reorder, CreateReorder({*plain.WithBound(bound), dst}, {}, {}));
    const std::vector<int8_t> weights(plain.SizeBytes(), 65);
    std::vector<int8_t> bytes(dst.SizeBytes());
    ExecuteArgs args;
    args.Set(kArgSrc, weights.data()).Set(kArgDst, bytes.data());
    EXPECT_EQ(reorder->Execute(args, Team::Serial()).code(), code) << bound;
  }
}

// Whatever element it is, and not what lies between elements.
TEST(BoundedReorderTest, RefusesWhatDoesNot) {
  const Dims dims = {5, 3};
  const MemoryDesc dst = *Weights(dims, "AB8a4b").WithBound(63);
  const MemoryDesc apart = *MemoryDesc::CreateStrided(dims, DataType::kS8, {4, 1});
  for (const MemoryDesc& src : {Weights(dims, "ab"), Weights(dims, "ba"), apart}) {
    ASSERT_OK_AND_ASSIGN(const auto reorder, CreateReorder({src, dst}, {}, {}));
    std::vector<int8_t> weights(src.SizeBytes(), src == apart ? 64 : 0);
    std::vector<uint8_t> bytes(dst.SizeBytes(), 0xA5);
    ExecuteArgs args;
    args.Set(kArgSrc, weights.data()).Set(kArgDst, bytes.data());
    for (int64_t o = 0; o < dims[0]; ++o) {
      for (int64_t i = 0; i < dims[1]; ++i) weights[src.Offset({o, i})] = 63;
    }
    EXPECT_THAT(reorder->Execute(args, Team::Serial()), IsOk());
    for (const auto& [element, magnitude] :
         {std::pair{64, "64"}, std::pair{-64, "64"}, std::pair{-128, "128"}}) {
      for (int64_t o : {0, 4}) {
        for (int64_t i : {0, 2}) {
          weights[src.Offset({o, i})] = static_cast<int8_t>(element);
          std::fill(bytes.begin(), bytes.end(), 0xA5);
          EXPECT_THAT(
              reorder->Execute(args, Team::Serial()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(absl::StrCat("magnitude ", magnitude, ", and dst is s8:5x3"))));
          EXPECT_EQ(bytes, std::vector<uint8_t>(bytes.size(), 0xA5)) << "nothing is written";
          weights[src.Offset({o, i})] = -63;
        }
      }
    }
  }
}

TEST(BoundedReorderTest, BytesAloneAreCopiedAsTheyAre) {
  const MemoryDesc dst = *Weights({2, 3}, "ab").WithBound(64);
  constexpr auto kUnimplemented = absl::StatusCode::kUnimplemented;
  EXPECT_THAT(
      CreateReorder({*MemoryDesc::CreatePattern({2, 3}, DataType::kF32, "ab"), dst}, {}, {}),
      StatusIs(kUnimplemented, "the elements of dst are bounded"));
  Attributes scaled;
  scaled.output_scales.scales = {2};
  EXPECT_THAT(CreateReorder({Weights({2, 3}, "ba"), dst}, scaled, {}),
              StatusIs(kUnimplemented, "the elements of dst are bounded"));
  for (const auto& row : ReorderImplementations()) {
    const bool takes = row.traits.algorithm == reorder::kBounded;
    EXPECT_EQ(CreateReorder({Weights({2, 3}, "ba"), dst}, {}, {.only = row.name}).ok(), takes)
        << row.name;
  }
  // From there as from any other.
  EXPECT_THAT(CreateReorder({dst, Weights({2, 3}, "ba")}, {}, {}), IsOk());
}

}  // namespace
}  // namespace tilewire::testing
