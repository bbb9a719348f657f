// SPDX-License-Identifier: Apache-2.0
//
// Every row that saves the places of maxima gives the bits and the places of the reference, for
// numbers of which many are equal, zeros of both signs, infinities and NaN among them.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>

#include "absl/strings/match.h"
#include "engine/primitives/pooling/pooling.h"
#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

struct PlacedPooling {
  const char* why;
  Dims src, dst, kernel, strides, left;
};

// Channels that fill vectors and that do not; rows of windows of one step of code and of several.
const PlacedPooling kPlacedPoolings[] = {
    {"overlap, padding at all borders", {2, 40, 9, 13}, {2, 40, 5, 7}, {3, 3}, {2, 2}, {1, 1}},
    {"many windows in a row", {1, 17, 4, 61}, {1, 17, 3, 59}, {2, 3}, {1, 1}, {0, 0}},
    {"side by side", {2, 24, 6, 52}, {2, 24, 3, 26}, {2, 2}, {2, 2}, {0, 0}},
    {"gaps between windows", {1, 8, 7, 70}, {1, 8, 3, 23}, {1, 2}, {3, 3}, {0, 0}},
    {"few channels", {3, 3, 5, 5}, {3, 3, 5, 5}, {3, 3}, {1, 1}, {1, 1}},
    {"a window that both borders cut", {1, 16, 2, 3}, {1, 16, 3, 3}, {4, 5}, {1, 1}, {2, 2}},
    {"256 taps", {1, 16, 20, 20}, {1, 16, 2, 2}, {16, 16}, {4, 4}, {0, 0}},
    {"more than 256 taps", {1, 16, 20, 20}, {1, 16, 2, 2}, {17, 17}, {3, 3}, {0, 0}},
    {"one dimension", {2, 21, 40}, {2, 21, 20}, {4}, {2}, {1}},
    {"three dimensions", {1, 16, 4, 5, 6}, {1, 16, 4, 3, 3}, {2, 3, 2}, {1, 2, 2}, {1, 1, 0}},
};

PoolingDesc TrainingDescOf(const PlacedPooling& one, const MemoryDesc& src, const MemoryDesc& dst) {
  PoolingDesc desc{PropKind::kForwardTraining,
                   PoolingAlgorithm::kMax,
                   src,
                   dst,
                   one.kernel,
                   one.strides,
                   one.left};
  for (size_t d = 0; d < one.kernel.size(); ++d) {
    desc.padding_right.push_back(std::max<int64_t>(
        0, (one.dst[d + 2] - 1) * one.strides[d] + one.kernel[d] - one.left[d] - one.src[d + 2]));
  }
  return desc;
}

std::vector<float> FewNumbers(int64_t count) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kNumbers[] = {-1, -0.0f, 0,  0.5f,       -0.0f,     0,
                                -2, -3,    -4, -kInfinity, kInfinity, kNan};
  std::vector<float> numbers;
  for (float at : RandomFloats(count, 1, 0, 1)) {
    // Most windows have finite numbers alone.
    const size_t kinds = at < 0.03f ? std::size(kNumbers) : std::size(kNumbers) - 3;
    numbers.push_back(kNumbers[static_cast<size_t>(at * 1e6f) % kinds]);
  }
  return numbers;
}

class PoolingPlacesTest : public RowTest<PoolingDesc> {
 protected:
  PoolingPlacesTest() : RowTest(CreatePooling) {}

  // The places of elements as numbers.
  static std::vector<int32_t> PlacesIn(const MemoryDesc& dst, const Bytes& saved) {
    const size_t elements = dst.SizeBytes() / sizeof(float);
    std::vector<float> widened(elements);
    for (size_t i = 0; i < elements; ++i) {
      int32_t place = saved[i];
      if (saved.size() > elements) std::memcpy(&place, &saved[4 * i], sizeof(place));
      widened[i] = static_cast<float>(place);
    }
    Bytes bytes(dst.SizeBytes());
    std::memcpy(bytes.data(), widened.data(), bytes.size());
    const std::vector<float> places = Unpack<float>(dst, bytes);
    return {places.begin(), places.end()};
  }
};

TEST_P(PoolingPlacesTest, BitsAndPlacesAreThoseOfTheReference) {
  for (const PlacedPooling& one : kPlacedPoolings) {
    const std::vector<Layout> srcs = LayoutsOf(one.src), dsts = LayoutsOf(one.dst);
    const std::vector<float> x = FewNumbers(*ElementCount(one.src));
    for (size_t i = 0; i < srcs.size(); ++i) {
      SCOPED_TRACE(absl::StrCat(one.why, ", ", srcs[i].why));
      const PoolingDesc desc = TrainingDescOf(one, srcs[i].desc, dsts[i].desc);
      const auto primitive = Create(desc);
      if (!primitive) continue;
      const auto reference = CreatePooling(desc, {}, {.reference_only = true});
      ASSERT_THAT(reference, IsOk());
      const Bytes src = Pack(desc.src, x);
      Bytes found = Garbage(primitive->Desc(kArgWorkspace), 5);
      Bytes wanted = Garbage((*reference)->Desc(kArgWorkspace), 6);
      const Bytes dst = ExecuteAllWays(*primitive, {{kArgSrc, &src}, {kArgWorkspace, &found}},
                                       kArgDst, Garbage(desc.dst, 7));
      const Bytes want = Execute(**reference, {{kArgSrc, &src}, {kArgWorkspace, &wanted}}, kArgDst,
                                 Garbage(desc.dst, 7), threading::Team::Serial());
      EXPECT_EQ(BitsOf(Unpack<float>(desc.dst, dst)), BitsOf(Unpack<float>(desc.dst, want)));
      EXPECT_EQ(PlacesIn(desc.dst, found), PlacesIn(desc.dst, wanted));
    }
  }
}

std::vector<Implementation<PoolingDesc>> RowsWithPlaces() {
  std::vector<Implementation<PoolingDesc>> rows;
  for (const auto& row : RowsThatRun({PropKind::kForwardTraining}, PoolingImplementations())) {
    if (absl::EndsWith(row.name, "maximum_places")) rows.push_back(row);
  }
  return rows;
}

INSTANTIATE_TEST_SUITE_P(AllImplementations, PoolingPlacesTest,
                         ::testing::ValuesIn(RowsWithPlaces()),
                         RowName<Implementation<PoolingDesc>>);

}  // namespace
}  // namespace tilewire::testing
