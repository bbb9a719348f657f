// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/tensor_layout.h"

#include "gtest/gtest.h"

namespace tilewire::runtime {
namespace {

MemoryDesc Desc(Dims dims, FormatTag tag) {
  return MemoryDesc::Create(dims, DataType::kF32, tag).value();
}

TEST(TensorLayoutTest, RowMajorIsAQuestionOfMemoryNotOfNames) {
  EXPECT_TRUE(IsRowMajorInMemory(Desc({2, 3, 4, 5}, FormatTag::k_nchw)));
  EXPECT_FALSE(IsRowMajorInMemory(Desc({2, 3, 4, 5}, FormatTag::k_nhwc)));
  EXPECT_TRUE(IsRowMajorInMemory(Desc({2, 3, 1, 1}, FormatTag::k_nhwc)));
  EXPECT_TRUE(IsRowMajorInMemory(Desc({2, 1, 4, 5}, FormatTag::k_nhwc)));
  EXPECT_TRUE(IsRowMajorInMemory(Desc({2, 32, 1, 1}, FormatTag::k_nChw16c)));
  EXPECT_FALSE(IsRowMajorInMemory(Desc({2, 32, 2, 1}, FormatTag::k_nChw16c)));
  EXPECT_FALSE(IsRowMajorInMemory(Desc({2, 31, 1, 1}, FormatTag::k_nChw16c)));
}

TEST(TensorLayoutTest, SameMemory) {
  const MemoryDesc nchw = Desc({2, 32, 1, 1}, FormatTag::k_nchw),
                   blocked = Desc({2, 32, 1, 1}, FormatTag::k_nChw16c);
  EXPECT_TRUE(SameMemory(nchw, blocked));
  EXPECT_FALSE(SameMemory(Desc({2, 32, 3, 1}, FormatTag::k_nchw),
                          Desc({2, 32, 3, 1}, FormatTag::k_nChw16c)));
}

TEST(TensorLayoutTest, LayoutLikeKeepsTheTag) {
  const auto like = LayoutLike(Desc({2, 32, 3, 3}, FormatTag::k_nChw16c), {2, 20, 3, 3});
  ASSERT_TRUE(like.ok());
  EXPECT_EQ(*like, Desc({2, 20, 3, 3}, FormatTag::k_nChw16c));
}

}  // namespace
}  // namespace tilewire::runtime
