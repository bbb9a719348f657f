// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/shuffle/shuffle.h"

#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

std::vector<int64_t> DivisorsOf(int64_t n) {
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d <= n; ++d) {
    if (n % d == 0) divisors.push_back(d);
  }
  return divisors;
}

// dst[v (C/G) + u] = src[u G + v], values in row-major order.
template <typename T>
std::vector<T> Shuffled(const Dims& dims, int axis, int64_t group, const std::vector<T>& src) {
  const MemoryDesc plain = Plain(dims);
  std::vector<T> dst(src.size());
  ForEachIndex(dims, [&](const Dims& from) {
    const int64_t u = from[axis] / group, v = from[axis] % group;
    Dims to = from;
    to[axis] = v * (dims[axis] / group) + u;
    dst[plain.Offset(to)] = src[plain.Offset(from)];
  });
  return dst;
}

// PyTorch's: view(n, g, c/g, h, w).transpose(1, 2).reshape(n, c, h, w).
std::vector<float> TorchChannelShuffle(const Dims& dims, int64_t groups,
                                       const std::vector<float>& src) {
  const int64_t n = dims[0], inside = dims[1] / groups, pixels = dims[2] * dims[3];
  std::vector<float> dst;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t c = 0; c < inside; ++c) {
      for (int64_t g = 0; g < groups; ++g) {
        const auto from = src.begin() + ((i * groups + g) * inside + c) * pixels;
        dst.insert(dst.end(), from, from + pixels);
      }
    }
  }
  return dst;
}

template <typename T>
std::vector<T> Numbered(const Dims& dims) {
  std::vector<T> values(*ElementCount(dims));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(i + 1);
  return values;
}

class ShuffleTest : public RowTest<ShuffleDesc> {
 protected:
  ShuffleTest() : RowTest(CreateShuffle) {}

  // The logical result; nothing where the row refuses.
  template <typename T>
  std::optional<std::vector<T>> Shuffle(const ShuffleDesc& desc, const std::vector<T>& values) {
    const bool backward = desc.prop_kind == PropKind::kBackwardData;
    const auto primitive = Create(desc);
    if (!primitive) return std::nullopt;
    const Bytes src = Pack(desc.src, values);
    const int input = backward ? kArgDiffDst : kArgSrc, output = backward ? kArgDiffSrc : kArgDst;
    const MemoryDesc& dst = primitive->Desc(output);
    return Unpack<T>(dst, ExecuteAllWays(*primitive, {{input, &src}}, output, Garbage(dst, 7)));
  }

  // The formula forward; backward undoes it.
  template <typename T>
  void ExpectForward(const MemoryDesc& md, int axis, int64_t group) {
    SCOPED_TRACE(absl::StrCat(md.ToString(), " axis ", axis, " group size ", group));
    const std::vector<T> values = Numbered<T>(md.dims());
    const auto forward = Shuffle<T>({PropKind::kForwardTraining, md, md, axis, group}, values);
    if (!forward) return;
    EXPECT_TRUE(*forward == Shuffled(md.dims(), axis, group, values));
    if (md.data_type() != DataType::kF32) return;
    const auto back = Shuffle<T>({PropKind::kBackwardData, md, md, axis, group}, *forward);
    ASSERT_TRUE(back);
    EXPECT_TRUE(*back == values);
    EXPECT_TRUE((*Shuffle<T>({PropKind::kBackwardData, md, md, axis, group}, values)) ==
                Shuffled(md.dims(), axis, md.dim(axis) / group, values));
  }
};

TEST_P(ShuffleTest, ChannelsBothWays) {
  for (const Dims& dims : ImageDims()) {
    for (const Layout& layout : LayoutsOf(dims)) {
      SCOPED_TRACE(layout.why);
      for (int64_t group : DivisorsOf(dims[1])) ExpectForward<float>(layout.desc, 1, group);
    }
  }
}

TEST_P(ShuffleTest, OtherTypes) {
  for (const Dims& dims : {Dims{2, 24, 3, 4}, Dims{1, 33, 5}}) {
    for (size_t i = 0; i < LayoutsOf(dims).size(); ++i) {
      ExpectForward<int32_t>(LayoutsOf(dims, DataType::kS32)[i].desc, 1, 3);
      ExpectForward<int8_t>(LayoutsOf(dims, DataType::kS8)[i].desc, 1, 3);
      ExpectForward<uint8_t>(LayoutsOf(dims, DataType::kU8)[i].desc, 1, 3);
      ExpectForward<uint16_t>(LayoutsOf(dims, DataType::kBf16)[i].desc, 1, 3);
    }
  }
}

TEST_P(ShuffleTest, OtherAxes) {
  if (!GetParam().traits.is_reference) GTEST_SKIP() << "takes channels only";
  const Dims dims = {4, 18, 6, 9};
  for (const Layout& layout : LayoutsOf(dims)) {
    for (int axis : {0, 2, 3}) {
      for (int64_t group : DivisorsOf(dims[axis])) ExpectForward<float>(layout.desc, axis, group);
    }
  }
  ExpectForward<float>(Plain({2, 12}), 1, 4);
  ExpectForward<float>(Plain({12}), 0, 4);
}

TEST_P(ShuffleTest, MoreThanOnePieceOfWork) {
  for (const char* tag : {"nchw", "nhwc", "nChw16c", "nChw8c"}) {
    ExpectForward<float>(Tagged({2, 30, 23, 31}, tag), 1, 5);
  }
}

// As many blocks of dst as of src, each made of all of them: 2, 4, 8 and 16 blocks of 16, also in
// several such sets, and images of several pieces of work.
TEST_P(ShuffleTest, BlocksThatExchangeTheirChannels) {
  for (const Dims& dims : {Dims{2, 32, 3, 1}, Dims{1, 64, 1, 5}, Dims{1, 128, 2, 2},
                           Dims{1, 256, 1, 3}, Dims{1, 64, 12, 13}}) {
    for (int64_t groups : {2, 4, 8, 16}) {
      ExpectForward<float>(Tagged(dims, "nChw16c"), 1, dims[1] / groups);
      ExpectForward<float>(Tagged(dims, "nChw8c"), 1, dims[1] / groups);
    }
  }
}

TEST_P(ShuffleTest, GroupSizeOfChannelsByGroupsIsTorchsChannelShuffle) {
  for (int64_t channels : {6, 24, 40, 58, 116}) {
    for (int64_t groups : DivisorsOf(channels)) {
      for (const char* tag : {"nChw16c", "nChw8c"}) {
        const MemoryDesc md = Tagged({2, channels, 3, 2}, tag);
        const std::vector<float> values = Numbered<float>(md.dims());
        const auto result =
            Shuffle<float>({PropKind::kForwardInference, md, md, 1, channels / groups}, values);
        EXPECT_TRUE(!result || *result == TorchChannelShuffle(md.dims(), groups, values));
      }
    }
  }
}

TEST_P(ShuffleTest, TensorsWithoutElements) {
  for (PropKind prop_kind : {PropKind::kForwardInference, PropKind::kBackwardData}) {
    for (const Dims& dims : {Dims{0, 4, 3, 3}, Dims{2, 0, 3, 3}, Dims{2, 4, 0, 3}}) {
      for (const char* tag : {"nchw", "nChw8c"}) {
        const MemoryDesc md = Tagged(dims, tag);
        const auto result = Shuffle<float>({prop_kind, md, md, 1, 2}, {});
        EXPECT_TRUE(!result || result->empty());
      }
    }
  }
}

TEST_P(ShuffleTest, AnyIsTheLayoutOfTheSource) {
  const MemoryDesc src = Tagged({2, 24, 3, 3}, "nChw8c");
  ShuffleDesc desc{PropKind::kForwardInference, src, src, 1, 4};
  desc.dst = *MemoryDesc::CreateAny(src.dims(), DataType::kF32);
  const auto primitive = Create(desc);
  ASSERT_TRUE(primitive);
  EXPECT_EQ(primitive->Desc(kArgDst), src);
}

TILEWIRE_TEST_EVERY_ROW(Shuffle);

TEST(ShuffleErrorsTest, CreationNamesWhatDoesNotFit) {
  constexpr auto kForward = PropKind::kForwardInference;
  const MemoryDesc good = Plain({1, 6, 4, 4});
  const auto status = StatusOfCreating(CreateShuffle);
  EXPECT_THAT(status({kForward, good, good, 4, 2}), StatusIs(kInvalid, "axis 4"));
  EXPECT_THAT(status({kForward, good, good, -1, 2}), StatusIs(kInvalid, "axis -1"));
  EXPECT_THAT(status({kForward, good, good, 1, 4}),
              StatusIs(kInvalid, "group size 4 does not divide 6"));
  EXPECT_THAT(status({kForward, good, good, 1, 0}), StatusIs(kInvalid, "group size 0"));
  EXPECT_THAT(status({kForward, good, good, 1, -2}), StatusIs(kInvalid, "group size -2"));
  EXPECT_THAT(status({kForward, good, Plain({1, 6, 4, 5}), 1, 2}), StatusIs(kInvalid, "dst"));
  EXPECT_THAT(status({kForward, MemoryDesc(), good, 1, 2}), StatusIs(kInvalid, "no layout"));
  EXPECT_THAT(status({kForward, good, Tagged({1, 6, 4, 4}, "nhwc"), 1, 2}),
              StatusIs(kUnimplemented, "layouts of src and dst differ"));
  const MemoryDesc half = Plain({1, 6, 4, 4}, DataType::kF16);
  EXPECT_THAT(status({kForward, half, half, 1, 2}), IsOk());
  const MemoryDesc bytes = Plain({1, 6, 4, 4}, DataType::kU8);
  EXPECT_THAT(status({PropKind::kBackwardData, bytes, bytes, 1, 2}),
              StatusIs(kUnimplemented, "takes f32 only, not u8"));
  Attributes relu;
  ASSERT_THAT(relu.post_ops.Append(EltwisePostOp{}), IsOk());
  EXPECT_THAT(status({kForward, good, good, 1, 2}, relu), StatusIs(kUnimplemented, "post-ops"));
}

}  // namespace
}  // namespace tilewire::testing
