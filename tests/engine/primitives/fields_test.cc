// SPDX-License-Identifier: Apache-2.0
//
// The key, the text and the tensors of a descriptor, which follow from the list of its fields.
#include "engine/primitives/fields.h"

#include <set>

#include "engine/primitives/primitives.h"
#include "engine/primitives/problem_text.h"
#include "gtest/gtest.h"

namespace tilewire::testing {
namespace {

struct Parts {
  std::vector<int64_t> first, second;
  std::vector<std::vector<IndexRun>> runs;
  bool flag = false;
};
TILEWIRE_FIELDS(Parts, first, second, runs, flag);

template <typename Desc>
std::string KeyOf(const Desc& desc) {
  std::string key;
  AppendKey(desc, &key);
  return key;
}

MemoryDesc Image(int64_t channels) {
  return MemoryDesc::CreatePattern({1, channels, 2, 2}, DataType::kF32, "abcd").value();
}

TEST(FieldsTest, EachFieldIsInTheKey) {
  const LrnDesc plain{PropKind::kForwardInference, LrnAlgorithm::kAcrossChannels, Image(8),
                      Image(8)};
  std::vector<LrnDesc> changed(8, plain);
  changed[0].prop_kind = PropKind::kForwardTraining;
  changed[1].algorithm = LrnAlgorithm::kWithinChannel;
  changed[2].src = Image(4);
  changed[3].dst = Image(4);
  changed[4].local_size = 3;
  changed[5].alpha = 2;
  changed[6].beta = 2;
  changed[7].k = 2;
  std::set<std::string> keys = {KeyOf(plain)};
  for (const LrnDesc& desc : changed) EXPECT_TRUE(keys.insert(KeyOf(desc)).second);
  EXPECT_EQ(KeyOf(plain), KeyOf(LrnDesc(plain)));
}

// The same bytes in another division are another key.
TEST(FieldsTest, ListsSayWhereTheyEnd) {
  const std::set<std::string> keys = {
      KeyOf(Parts{{1, 2}, {3}, {}}),           KeyOf(Parts{{1}, {2, 3}, {}}),
      KeyOf(Parts{{}, {1, 2, 3}, {}}),         KeyOf(Parts{{}, {}, {{{0, 1, 2}}, {}}}),
      KeyOf(Parts{{}, {}, {{}, {{0, 1, 2}}}}), KeyOf(Parts{{}, {}, {{{0, 1, 2}}}}),
  };
  EXPECT_EQ(keys.size(), 6u);
}

TEST(FieldsTest, TheTextHoldsEveryFieldButTensorsAndPropagation) {
  const LrnDesc lrn{PropKind::kForwardInference, LrnAlgorithm::kAcrossChannels, Image(8), Image(8)};
  EXPECT_EQ(ProblemText(lrn), "algorithm:across_channels local_size:5 alpha:0.0001 beta:0.75 k:1");
  EXPECT_EQ(ProblemText(EltwiseDesc{.op = {EltwiseAlgorithm::kLinear, 2, 3}}),
            "algorithm:linear:2:3");
  EXPECT_EQ(ProblemText(SumDesc{{1, 0.5f}, {}, {}}), "scales:1x0.5");
  EXPECT_EQ(ProblemText(SelectDesc{{}, {}, {{}, {{1, 2, 3}, {0, 1, 1}}}, 0}),
            "from:;1:2:3x0:1:1 fill:0");
  EXPECT_EQ(ProblemText(ReorderDesc{}), "");
}

TEST(FieldsTest, TensorsAreVisitedInLists) {
  const ConcatDesc concat{1, {Image(1), Image(2)}, Image(3)};
  std::vector<int64_t> channels;
  VisitTensors(concat, [&](const MemoryDesc& tensor) { channels.push_back(tensor.dim(1)); });
  EXPECT_EQ(channels, (std::vector<int64_t>{1, 2, 3}));
}

}  // namespace
}  // namespace tilewire::testing
