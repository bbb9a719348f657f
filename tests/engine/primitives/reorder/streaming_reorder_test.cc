// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/reorder/streaming_reorder.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/primitives/reorder/reorder.h"
#include "tests/engine/primitives/reorder/reorder_tensors.h"
#include "tests/support/padded_tail.h"
#include "tests/support/random_tensor.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {
namespace {

// Pieces of up to `longest` bytes, empty ones among them.
void CheckStream(const MemoryDesc& src, const MemoryDesc& dst, int64_t longest) {
  SCOPED_TRACE(absl::StrCat(src.ToString(), " -> ", dst.ToString(), ", pieces up to ", longest));
  const Bytes bytes = Garbage(src, 1), before = Garbage(dst, 2);
  Bytes expected = before, streamed = before;
  ASSERT_OK_AND_ASSIGN(const auto reorder, CreateReorder({src, dst}, {}, {.reference_only = true}));
  ExecuteArgs args;
  args.Set(kArgSrc, bytes.data()).Set(kArgDst, expected.data());
  ASSERT_THAT(reorder->Execute(args, threading::Team::Serial()), IsOk());

  ASSERT_OK_AND_ASSIGN(const auto stream, StreamingReorder::Create(src, dst, streamed.data()));
  absl::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  Random random(longest);
  while (!rest.empty()) {
    const absl::string_view piece = rest.substr(0, random.Integer(0, longest));
    ASSERT_THAT(stream->Append(piece), IsOk());
    rest.remove_prefix(piece.size());
  }
  EXPECT_THAT(stream->Finish(), IsOk());
  EXPECT_TRUE(PaddingIsZero(dst, streamed.data()));
  EXPECT_TRUE(streamed == expected);
}

TEST(StreamingReorderTest, AnyCutsGiveTheBytesOfThePlainReorder) {
  for (int64_t channels : {1, 2, 3, 4, 8, 15, 16, 17, 33}) {
    for (const Dims& dims :
         {Dims{1, channels, 6, 7}, Dims{3, channels, 1, 5}, Dims{2, channels, 4, 1}}) {
      for (const char* from : {"nchw", "nhwc", "chwn"}) {
        for (const char* to : {"nChw16c", "nChw8c", "nChw4c", "nchw", "nhwc", "NChw16n16c"}) {
          for (DataType type : {DataType::kF32, DataType::kBf16, DataType::kU8}) {
            for (int64_t longest : {3, 50, 100000}) {
              CheckStream(Make(dims, from, type), Make(dims, to, type), longest);
            }
          }
        }
      }
    }
  }
}

TEST(StreamingReorderTest, OtherRanksAndPartsOfADestination) {
  CheckStream(Make({2, 5}, "nc"), Make({2, 5}, "cn"), 7);
  CheckStream(Make({7}, "x"), Make({7}, "x"), 7);
  CheckStream(Make({1}, "x"), Make({1}, "x"), 3);
  CheckStream(Make({2, 3, 9}, "nwc"), Make({2, 3, 9}, "nCw16c"), 7);
  CheckStream(Make({2, 3, 3, 2, 9}, "ndhwc"), Make({2, 3, 3, 2, 9}, "nCdhw16c"), 31);
  CheckStream(Make({20, 9, 3, 3}, "oihw"), Make({20, 9, 3, 3}, "OIhw4i16o4i"), 31);
  const MemoryDesc part = *Make({4, 24, 9, 9}, "nChw8c").SubMemory({2, 8, 5, 5}, {1, 8, 2, 3});
  CheckStream(Make({2, 8, 5, 5}, "nhwc"), part, 31);
  CheckStream(Make({2, 8, 5, 5}, "nchw"), part, 31);
  CheckStream(Make({0, 3, 5, 5}, "nchw"), Make({0, 3, 5, 5}, "nChw8c"), 31);
}

TEST(StreamingReorderTest, TooManyAndTooFewBytesAreRefused) {
  const MemoryDesc src = Make({1, 3, 2, 2}, "nhwc"), dst = Make({1, 3, 2, 2}, "nChw16c");
  Bytes bytes(dst.SizeBytes());
  const std::string all(src.SizeBytes(), 'x');
  ASSERT_OK_AND_ASSIGN(const auto stream, StreamingReorder::Create(src, dst, bytes.data()));
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(stream->Append(all + "x"), StatusIs(kInvalid, "more bytes than the 48"));
  EXPECT_THAT(stream->Append(all.substr(1)), IsOk());
  EXPECT_THAT(stream->Finish(), StatusIs(kInvalid, "47 bytes of the 48"));
  EXPECT_THAT(stream->Append("x"), IsOk());
  EXPECT_THAT(stream->Finish(), IsOk());
  EXPECT_THAT(stream->Append("x"), StatusIs(kInvalid));
}

TEST(StreamingReorderTest, WhatCannotBeStreamedIsRefused) {
  const MemoryDesc nchw = Make({1, 3, 2, 2}, "nchw");
  Bytes bytes(1024);
  const auto create = [&](const MemoryDesc& src, const MemoryDesc& dst) {
    return StreamingReorder::Create(src, dst, bytes.data()).status();
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(create(Make({1, 3, 2, 2}, "nChw8c"), nchw), StatusIs(kInvalid, "plain and dense"));
  EXPECT_THAT(
      create(*MemoryDesc::CreateStrided({2, 2}, DataType::kF32, {3, 1}), Make({2, 2}, "nc")),
      StatusIs(kInvalid, "plain and dense"));
  EXPECT_THAT(create(nchw, MemoryDesc()), StatusIs(kInvalid, "dst"));
  EXPECT_THAT(create(nchw, Make({1, 3, 2, 3}, "nchw")), StatusIs(kInvalid, "shapes differ"));
  EXPECT_THAT(create(nchw, Make({1, 3, 2, 2}, "nchw", DataType::kU8)),
              StatusIs(absl::StatusCode::kUnimplemented, "from f32 to u8"));
  const MemoryDesc weights = Make({16, 4, 1, 1}, "oihw", DataType::kS8);
  ASSERT_OK_AND_ASSIGN(const MemoryDesc compensated, weights.WithCompensation(1));
  EXPECT_THAT(create(weights, compensated),
              StatusIs(absl::StatusCode::kUnimplemented, "carries sums"));
}

}  // namespace
}  // namespace tilewire::testing
