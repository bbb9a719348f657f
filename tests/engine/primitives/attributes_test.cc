// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/attributes.h"

#include <limits>
#include <set>
#include <string>

#include "gtest/gtest.h"

namespace tilewire::testing {
namespace {

const PostOp kSum = SumPostOp{.scale = 1};
const PostOp kRelu = EltwisePostOp{.op = {.function = EltwiseAlgorithm::kRelu}};
const PostOp kMaxPooling = MaxPoolingPostOp{};

PostOps Chain(std::initializer_list<PostOp> ops) {
  PostOps chain;
  for (const PostOp& op : ops) EXPECT_TRUE(chain.Append(op).ok());
  return chain;
}

std::string KeyOf(const Attributes& attributes) {
  std::string key;
  attributes.AppendKey(&key);
  return key;
}

TEST(PostOpsTest, HoldsFourAndKeepsTheirOrder) {
  PostOps chain = Chain({kSum, kRelu, kSum, kRelu});
  EXPECT_EQ(chain.ToString(), "sum:1;relu:0;sum:1;relu:0");
  EXPECT_EQ(chain.Append(kRelu).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(chain.entries().size(), 4u);
}

TEST(PostOpsTest, MaxPoolingEndsTheChain) {
  PostOps chain = Chain({kRelu, kMaxPooling});
  EXPECT_EQ(chain.ToString(), "relu:0;max_pooling:2x2");
  EXPECT_TRUE(chain.HasMaxPooling());
  for (const PostOp& op : {kSum, kRelu, kMaxPooling})
    EXPECT_EQ(chain.Append(op).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(chain.WithoutMaxPooling(), Chain({kRelu}));
  EXPECT_FALSE(Chain({kRelu}).HasMaxPooling());
  EXPECT_EQ(Chain({kSum, kRelu}).WithoutMaxPooling(), Chain({kSum, kRelu}));
}

TEST(PostOpsTest, AMaskEndsTheChain) {
  PostOps chain = Chain({kSum, MaskPostOp{0.25f}});
  EXPECT_EQ(chain.ToString(), "sum:1;mask:0.25");
  ASSERT_NE(chain.Mask(), nullptr);
  EXPECT_EQ(chain.Mask()->alpha, 0.25f);
  EXPECT_EQ(Chain({kSum}).Mask(), nullptr);
  for (const PostOp& op : {kSum, kRelu, PostOp(MaskPostOp{})})
    EXPECT_EQ(chain.Append(op).code(), absl::StatusCode::kInvalidArgument);
}

TEST(PostOpsTest, RefusesNumbersThatAreNotFinite) {
  PostOps chain;
  for (float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                    std::numeric_limits<float>::quiet_NaN()}) {
    const PostOp ops[] = {SumPostOp{.scale = bad}, EltwisePostOp{.op = {.alpha = bad}},
                          EltwisePostOp{.op = {.beta = bad}}, EltwisePostOp{.scale = bad},
                          MaskPostOp{bad}};
    for (const PostOp& op : ops) {
      EXPECT_EQ(chain.Append(op).code(), absl::StatusCode::kInvalidArgument) << bad;
    }
  }
  EXPECT_TRUE(chain.empty());
}

TEST(PostOpsTest, KnowsWhatItNeedsOfTheDestination) {
  EXPECT_FALSE(Chain({kRelu}).HasSum());
  EXPECT_TRUE(Chain({kRelu, kSum}).HasSum());
}

// Seeds 003: the library copies attributes, so that a later change of the caller's does not reach
// the primitive.
TEST(AttributesTest, CopiesAreIndependent) {
  Attributes original;
  original.post_ops = Chain({kSum});
  const Attributes copy = original;
  ASSERT_TRUE(original.post_ops.Append(kRelu).ok());
  original.output_scales.scales[0] = 2;
  EXPECT_EQ(copy.post_ops.ToString(), "sum:1");
  EXPECT_TRUE(copy.output_scales.IsDefault());
  EXPECT_FALSE(original.output_scales.IsDefault());
}

TEST(AttributesTest, EqualAttributesAndNoOthersHaveOneKey) {
  std::vector<Attributes> different(17);
  different[1].scratchpad_mode = ScratchpadMode::kUser;
  different[2].post_ops = Chain({kSum});
  different[3].post_ops = Chain({kRelu});
  different[4].post_ops = Chain({kSum, kRelu});
  different[5].post_ops = Chain({kRelu, kSum});
  different[6].output_scales.scales = {2};
  different[7].output_scales = {.mask = 2, .scales = {1, 1}};
  different[8].output_scales = {.mask = 2, .scales = {1, 1, 1}};
  different[9].post_ops = Chain({kMaxPooling});
  different[10].post_ops = Chain({kRelu, kMaxPooling});
  different[11].post_ops = Chain({PReluPostOp{{1, 2}}});
  different[12].post_ops = Chain({PReluPostOp{{1, 3}}});
  different[13].precision = Precision::kFast;
  different[14].precision = Precision::kBf16;
  different[15].post_ops = Chain({MaskPostOp{}});
  different[16].post_ops = Chain({MaskPostOp{0.5f}});
  std::set<std::string> keys;
  for (const Attributes& attributes : different) {
    EXPECT_EQ(KeyOf(attributes), KeyOf(Attributes(attributes)));
    keys.insert(KeyOf(attributes));
  }
  EXPECT_EQ(keys.size(), different.size());
}

}  // namespace
}  // namespace tilewire::testing
