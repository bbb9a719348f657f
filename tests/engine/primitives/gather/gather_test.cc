// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/gather/gather.h"

#include <atomic>
#include <limits>

#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

struct GatherCase {
  const char* why;
  int axis;
  Dims src, indices;
};

constexpr int64_t kAlongAxis = 7;

std::vector<GatherCase> GatherCases() {
  return {
      {"rows of a table", 0, {kAlongAxis, 5}, {3}},
      {"rows by a matrix of indices", 0, {kAlongAxis, 5}, {2, 3}},
      {"columns", 1, {4, kAlongAxis}, {5}},
      {"between dimensions", 1, {2, kAlongAxis, 3}, {2, 2}},
      {"one index", 2, {2, 3, kAlongAxis}, {1}},
      {"no index", 0, {kAlongAxis, 5}, {0}},
      {"elements of a line", 0, {kAlongAxis}, {40}},
      {"more than one piece of work", 0, {kAlongAxis, 3000}, {90}},
  };
}

Dims GatheredDims(const GatherCase& one) {
  Dims dims(one.src.begin(), one.src.begin() + one.axis);
  dims.insert(dims.end(), one.indices.begin(), one.indices.end());
  dims.insert(dims.end(), one.src.begin() + one.axis + 1, one.src.end());
  return dims;
}

// Whole numbers and fractions in [-size, size).
std::vector<float> IndicesOf(int64_t count) {
  constexpr float kIndices[] = {0, 6, -1, -7, 3.75f, -2.5f, -0.25f, 2, 5.999f};
  std::vector<float> indices;
  for (int64_t i = 0; i < count; ++i) indices.push_back(kIndices[i % 9]);
  return indices;
}

class GatherTest : public RowTest<GatherDesc> {
 protected:
  GatherTest() : RowTest(CreateGather) {}

  void ExpectGathered(const GatherCase& one, const MemoryDesc& src, const MemoryDesc& dst) {
    SCOPED_TRACE(absl::StrCat(one.why, ": ", src.ToString(), " -> ", dst.ToString()));
    const MemoryDesc indices = Plain(one.indices);
    const auto primitive = Create({one.axis, src, indices, dst});
    if (!primitive) return;
    const Bytes source = RandomTensor(src, 1);
    const std::vector<float> numbers = IndicesOf(indices.ElementCount());
    const Bytes packed = Pack(indices, numbers);
    const std::vector<uint32_t> elements = ElementBits(src, source);
    std::vector<uint32_t> expected;
    int64_t inner = 1;
    for (size_t d = one.axis + 1; d < one.src.size(); ++d) inner *= one.src[d];
    for (int64_t outer = 0; outer * inner * kAlongAxis < src.ElementCount(); ++outer) {
      for (float number : numbers) {
        int64_t at = static_cast<int64_t>(number);
        if (at < 0) at += kAlongAxis;
        for (int64_t k = 0; k < inner; ++k)
          expected.push_back(elements[(outer * kAlongAxis + at) * inner + k]);
      }
    }
    const Inputs inputs = {{kArgSrc, &source}, {kArgSrc1, &packed}};
    EXPECT_EQ(ElementBits(dst, ExecuteAllWays(*primitive, inputs, kArgDst, Garbage(dst, 7))),
              expected);
  }
};

TEST_P(GatherTest, EveryCaseOfEveryType) {
  for (const GatherCase& one : GatherCases()) {
    const Dims dims = GatheredDims(one);
    ExpectGathered(one, Plain(one.src), Plain(dims));
    for (DataType type : kOtherTypes) ExpectGathered(one, Plain(one.src, type), Plain(dims, type));
  }
}

TEST_P(GatherTest, LayoutsThatDiffer) {
  if (!GetParam().traits.is_reference) GTEST_SKIP() << "takes row-major tensors only";
  const GatherCase one{"", 1, {2, kAlongAxis, 3}, {2, 2}};
  for (const Layout& src : LayoutsOf(one.src)) {
    for (const Layout& dst : LayoutsOf(GatheredDims(one))) ExpectGathered(one, src.desc, dst.desc);
  }
}

TEST_P(GatherTest, IndicesOutsideAreRefusedBeforeAnythingIsWritten) {
  const MemoryDesc src = Plain({kAlongAxis, 2}), indices = Plain({2}), dst = Plain({2, 2});
  const auto primitive = Create({0, src, indices, dst});
  ASSERT_TRUE(primitive);
  const Bytes source = RandomTensor(src, 1);
  for (float outside : {7.0f, -8.0f, 1e30f, -1e30f, std::numeric_limits<float>::infinity(),
                        std::numeric_limits<float>::quiet_NaN()}) {
    const Bytes packed = Pack<float>(indices, {0, outside});
    const Bytes before = Garbage(dst, 7);
    Bytes after = before;
    ExecuteArgs args;
    args.Set(kArgSrc, source.data()).Set(kArgSrc1, packed.data()).Set(kArgDst, after.data());
    EXPECT_THAT(primitive->library->Execute(args, threading::Team::Serial()),
                StatusIs(kInvalid, "is outside the 7 elements"))
        << outside;
    EXPECT_EQ(before, after);
  }
}

// As far as f32 does not count.
TEST_P(GatherTest, IndicesThatAreIntegers) {
  const MemoryDesc src = Plain({3, 2}), dst = Plain({4, 2});
  const Bytes source = Pack<float>(src, {0, 1, 10, 11, 20, 21});
  const std::vector<float> expected = {20, 21, 0, 1, 20, 21, 10, 11};
  const MemoryDesc wide = Plain({4}, DataType::kS64), narrow = Plain({4}, DataType::kS32);
  const Bytes of_wide = Pack<int64_t>(wide, {2, 0, -1, -2});
  const Bytes of_narrow = Pack<int32_t>(narrow, {2, 0, -1, -2});
  for (const auto& [desc, indices] : {std::pair(wide, &of_wide), std::pair(narrow, &of_narrow)}) {
    const auto primitive = Create({0, src, desc, dst});
    ASSERT_TRUE(primitive);
    const Inputs inputs = {{kArgSrc, &source}, {kArgSrc1, indices}};
    EXPECT_EQ(Unpack<float>(dst, ExecuteAllWays(*primitive, inputs, kArgDst, Garbage(dst, 7))),
              expected);
  }
  const auto primitive = Create({0, src, wide, dst});
  const Bytes outside = Pack<int64_t>(wide, {0, 0, int64_t{1} << 32, 0});
  Bytes after = Garbage(dst, 7);
  ExecuteArgs args;
  args.Set(kArgSrc, source.data()).Set(kArgSrc1, outside.data()).Set(kArgDst, after.data());
  EXPECT_THAT(primitive->library->Execute(args, threading::Team::Serial()),
              StatusIs(kInvalid, "index 4294967296 is outside the 3 elements"));
}

// Where indices lie in the order of memory, and where they do not.
TEST_P(GatherTest, TheFirstIndexOutsideIsNamed) {
  const MemoryDesc src = Plain({3}), dst = Plain({2, 2});
  const MemoryDesc apart = *MemoryDesc::CreateStrided({2, 2}, DataType::kS32, {1, 2});
  const Bytes source = RandomTensor(src, 1);
  for (const MemoryDesc& indices : {Plain({2, 2}, DataType::kS32), apart}) {
    const auto primitive = Create({0, src, indices, dst});
    if (!primitive) continue;
    const Bytes packed = Pack<int32_t>(indices, {0, 5, 7, -4});
    Bytes after = Garbage(dst, 7);
    ExecuteArgs args;
    args.Set(kArgSrc, source.data()).Set(kArgSrc1, packed.data()).Set(kArgDst, after.data());
    EXPECT_THAT(primitive->library->Execute(args, threading::Team::Serial()),
                StatusIs(kInvalid, "index 5 is outside the 3 elements"))
        << indices.ToString();
  }
}

// Whatever thread finds which first: several pieces of work have some outside.
TEST_P(GatherTest, TheFirstIndexOutsideIsNamedOnSeveralThreads) {
  constexpr int64_t kColumns = 2, kRows = 200'000;
  const MemoryDesc src = Plain({3}), dst = Plain({kRows, kColumns});
  const MemoryDesc apart =
      *MemoryDesc::CreateStrided({kRows, kColumns}, DataType::kS32, {1, kRows});
  const Bytes source = RandomTensor(src, 1);
  std::vector<int32_t> numbers(kRows * kColumns, 2);
  for (int32_t i = 100'001; i < kRows * kColumns; i += 10'000) numbers[i] = i;
  Bytes after(dst.SizeBytes());
  threading::Arena arena(4);
  for (const MemoryDesc& indices : {Plain({kRows, kColumns}, DataType::kS32), apart}) {
    const auto primitive = Create({0, src, indices, dst});
    if (!primitive) continue;
    const Bytes packed = Pack(indices, numbers);
    ExecuteArgs args;
    args.Set(kArgSrc, source.data()).Set(kArgSrc1, packed.data()).Set(kArgDst, after.data());
    for (int round = 0; round < 20; ++round) {
      EXPECT_THAT(primitive->library->Execute(args, threading::Team(&arena)),
                  StatusIs(kInvalid, "index 100001 is outside the 3 elements"))
          << indices.ToString();
    }
  }
}

// There may be as many as memory holds.
TEST_P(GatherTest, IndicesOfAStoppedRunAreNotLookedAt) {
  const MemoryDesc src = Plain({3}), indices = Plain({2}, DataType::kS32), dst = Plain({2});
  const auto primitive = Create({0, src, indices, dst});
  ASSERT_TRUE(primitive);
  const Bytes source = RandomTensor(src, 1), outside = Pack<int32_t>(indices, {5, 5});
  Bytes after = Garbage(dst, 7);
  ExecuteArgs args;
  args.Set(kArgSrc, source.data()).Set(kArgSrc1, outside.data()).Set(kArgDst, after.data());
  const threading::Team serial = threading::Team::Serial();
  std::atomic<bool> stop = true;
  EXPECT_THAT(primitive->library->Execute(args, serial.Until(&stop)), IsOk());
  stop = false;
  serial.Until(&stop).ParallelFor(1, [&](int64_t) {
    EXPECT_THAT(primitive->library->Execute(args, serial), StatusIs(kInvalid, "index 5"));
    stop = true;
    EXPECT_THAT(primitive->library->Execute(args, serial), IsOk()) << "within a piece of work";
  });
}

TEST_P(GatherTest, NoIndexIsInsideOfNoElements) {
  const MemoryDesc src = Plain({0, 2}), indices = Plain({2}), dst = Plain({2, 2});
  const auto primitive = Create({0, src, indices, dst});
  ASSERT_TRUE(primitive);
  Bytes after = Garbage(dst, 7);
  for (float index : {0.0f, -0.25f, -1.0f}) {
    const Bytes packed = Pack<float>(indices, {index, index});
    ExecuteArgs args;
    args.Set(kArgSrc, after.data()).Set(kArgSrc1, packed.data()).Set(kArgDst, after.data());
    EXPECT_THAT(primitive->library->Execute(args, threading::Team::Serial()),
                StatusIs(kInvalid, "is outside the 0 elements"))
        << index;
  }
}

// The last element of a size that f32 does not hold, by an index of f32.
TEST_P(GatherTest, MoreElementsThanF32Counts) {
  constexpr int64_t kSize = (int64_t{1} << 24) + 1;
  const MemoryDesc src = Plain({kSize}, DataType::kU8), dst = Plain({2}, DataType::kU8);
  const MemoryDesc indices = Plain({2});
  const auto primitive = Create({0, src, indices, dst});
  ASSERT_TRUE(primitive);
  Bytes source = Garbage(src, 0);
  source[0] = 5;
  source[kSize - 1] = 7;
  const auto run = [&](float index, Bytes* result) {
    const Bytes packed = Pack<float>(indices, {index, 0});
    ExecuteArgs args;
    args.Set(kArgSrc, source.data()).Set(kArgSrc1, packed.data()).Set(kArgDst, result->data());
    return primitive->library->Execute(args, threading::Team::Serial());
  };
  Bytes result = Garbage(dst, 9);
  EXPECT_THAT(run(16777216, &result), IsOk());
  EXPECT_EQ(Unpack<uint8_t>(dst, result), (std::vector<uint8_t>{7, 5}));
  EXPECT_THAT(run(16777218, &result), StatusIs(kInvalid, "is outside the 16777217 elements"));
  EXPECT_THAT(run(-16777218, &result), StatusIs(kInvalid, "is outside the 16777217 elements"));
}

TILEWIRE_TEST_EVERY_ROW(Gather);

TEST(GatherErrorsTest, CreationNamesWhatDoesNotFit) {
  const MemoryDesc src = Plain({4, 5}), indices = Plain({3}), dst = Plain({3, 5});
  const auto status = StatusOfCreating(CreateGather);
  EXPECT_THAT(status({0, src, indices, dst}), IsOk());
  EXPECT_THAT(status({2, src, indices, dst}), StatusIs(kInvalid, "axis 2"));
  EXPECT_THAT(status({-1, src, indices, dst}), StatusIs(kInvalid, "axis -1"));
  EXPECT_THAT(status({1, src, indices, dst}), StatusIs(kInvalid, "give f32 [4,3], not"));
  EXPECT_THAT(status({0, src, indices, Plain({3, 5}, DataType::kU8)}),
              StatusIs(kInvalid, "give f32 [3,5], not u8"));
  EXPECT_THAT(status({0, src, Plain({3}, DataType::kU8), dst}),
              StatusIs(kUnimplemented, "f32, s32 and s64 only"));
}

}  // namespace
}  // namespace tilewire::testing
