// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/gather_channels/gather_channels.h"

#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

struct ChannelsCase {
  const char* why;
  std::vector<int64_t> sizes;  // channels of the sources
  std::vector<ChannelSource> channels;
};

// Every channel of the sources, first to last in turns: 0, n - 1, 1, n - 2 ...
std::vector<ChannelSource> InTurns(const std::vector<int64_t>& sizes) {
  std::vector<ChannelSource> all, turns;
  for (int s = 0; s < static_cast<int>(sizes.size()); ++s) {
    for (int64_t c = 0; c < sizes[s]; ++c) all.push_back({s, c});
  }
  for (size_t i = 0; i < all.size(); ++i)
    turns.push_back(i % 2 == 0 ? all[i / 2] : all[all.size() - 1 - i / 2]);
  return turns;
}

std::vector<ChannelsCase> ChannelsCases() {
  return {
      {"whole blocks of 16", {32, 16}, InTurns({32, 16})},
      {"tails in both sources", {17, 7}, InTurns({17, 7})},
      {"three sources", {8, 24, 3}, InTurns({8, 24, 3})},
      {"one channel many times", {5}, std::vector<ChannelSource>(20, {0, 3})},
      {"a few of many, and a source that is not read", {40, 9}, {{0, 39}, {0, 0}, {0, 17}}},
      {"no channel", {3}, {}},
  };
}

class GatherChannelsTest : public RowTest<GatherChannelsDesc> {
 protected:
  GatherChannelsTest() : RowTest(CreateGatherChannels) {}

  // Each source in layout number `from` of its shape, dst in layout number `to`.
  void ExpectGathered(const ChannelsCase& one, Dims dims, size_t from, size_t to,
                      DataType type = DataType::kF32) {
    GatherChannelsDesc desc;
    desc.channels = one.channels;
    for (int64_t size : one.sizes) {
      dims[1] = size;
      desc.srcs.push_back(LayoutsOf(dims, type)[from].desc);
    }
    dims[1] = static_cast<int64_t>(one.channels.size());
    desc.dst = LayoutsOf(dims, type)[to].desc;
    SCOPED_TRACE(
        absl::StrCat(one.why, ": ", desc.srcs[0].ToString(), " ... -> ", desc.dst.ToString()));
    const auto primitive = Create(desc);
    if (!primitive) return;
    std::vector<Bytes> packed;
    for (size_t s = 0; s < desc.srcs.size(); ++s) packed.push_back(RandomTensor(desc.srcs[s], s));
    Inputs inputs;
    std::vector<std::vector<uint32_t>> elements;
    for (size_t s = 0; s < packed.size(); ++s) {
      inputs.emplace_back(kArgMultipleSrc + static_cast<int>(s), &packed[s]);
      elements.push_back(ElementBits(desc.srcs[s], packed[s]));
    }
    std::vector<uint32_t> expected;
    ForEachIndex(dims, [&](Dims index) {
      const ChannelSource& channel = one.channels[index[1]];
      index[1] = channel.channel;
      expected.push_back(
          elements[channel.tensor][Plain(desc.srcs[channel.tensor].dims()).Offset(index)]);
    });
    EXPECT_EQ(
        ElementBits(desc.dst, ExecuteAllWays(*primitive, inputs, kArgDst, Garbage(desc.dst, 7))),
        expected);
  }
};

TEST_P(GatherChannelsTest, EveryCaseInEveryLayout) {
  for (const ChannelsCase& one : ChannelsCases()) {
    for (const Dims& dims : {Dims{2, 0, 3, 4}, Dims{1, 0, 5}, Dims{1, 0, 2, 1, 3}}) {
      for (size_t layout = 0; layout < LayoutsOf(dims).size(); ++layout)
        ExpectGathered(one, dims, layout, layout);
    }
  }
}

TEST_P(GatherChannelsTest, LayoutsThatDiffer) {
  const ChannelsCase one = ChannelsCases()[1];
  const size_t layouts = LayoutsOf({2, 1, 3, 4}).size();
  for (size_t from = 0; from < layouts; ++from) {
    for (size_t to = 0; to < layouts; ++to) ExpectGathered(one, {2, 0, 3, 4}, from, to);
  }
}

TEST_P(GatherChannelsTest, OtherTypes) {
  for (DataType type : kOtherTypes) {
    for (size_t layout = 0; layout < LayoutsOf({2, 1, 3, 4}).size(); ++layout)
      ExpectGathered(ChannelsCases()[2], {2, 0, 3, 4}, layout, layout, type);
  }
}

TEST_P(GatherChannelsTest, MoreThanOnePieceOfWork) {
  for (size_t layout = 0; layout < LayoutsOf({1, 1, 3, 4}).size(); ++layout)
    ExpectGathered(ChannelsCases()[0], {2, 0, 23, 17}, layout, layout);
}

TILEWIRE_TEST_EVERY_ROW(GatherChannels);

TEST(GatherChannelsErrorsTest, CreationNamesWhatDoesNotFit) {
  const MemoryDesc src = Plain({1, 3, 4, 4}), dst = Plain({1, 2, 4, 4});
  const auto status = StatusOfCreating(CreateGatherChannels);
  EXPECT_THAT(status({{src}, dst, {{0, 2}, {0, 0}}}), IsOk());
  EXPECT_THAT(status({{}, dst, {{0, 2}, {0, 0}}}), StatusIs(kInvalid, "no source"));
  EXPECT_THAT(status({{src}, dst, {{0, 2}}}), StatusIs(kInvalid, "1 entries for the 2"));
  EXPECT_THAT(status({{src}, dst, {{0, 3}, {0, 0}}}), StatusIs(kInvalid, "no channel 3"));
  EXPECT_THAT(status({{src}, dst, {{0, 2}, {1, 0}}}), StatusIs(kInvalid, "of a source 1"));
  EXPECT_THAT(status({{src}, dst, {{0, 2}, {0, -1}}}), StatusIs(kInvalid, "no channel -1"));
  EXPECT_THAT(status({{Plain({1, 3, 4, 5})}, dst, {{0, 2}, {0, 0}}}),
              StatusIs(kInvalid, "source 0 is f32:1x3x4x5"));
  EXPECT_THAT(status({{Plain({1, 3, 4, 4}, DataType::kU8)}, dst, {{0, 2}, {0, 0}}}),
              StatusIs(kInvalid, "source 0 is u8"));
  EXPECT_THAT(status({{Plain({3})}, Plain({3}), {}}), StatusIs(kInvalid, "no channels"));
}

}  // namespace
}  // namespace tilewire::testing
