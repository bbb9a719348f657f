// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/reorder/reorder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/separable_offsets.h"
#include "engine/memory/zero_padding.h"
#include "tests/engine/primitives/cases_taken.h"
#include "tests/engine/primitives/reorder/reorder_tensors.h"
#include "tests/support/padded_tail.h"
#include "tests/support/random_tensor.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {
namespace {

// The tensor: any bytes, but zeros in the padding.
Bytes RandomTensor(const MemoryDesc& desc, uint64_t seed) {
  Bytes bytes = Garbage(desc, seed);
  ZeroPadding(desc, bytes.data());
  return bytes;
}

// Plain copying, straight from the descriptors; bytes outside the tensor stay.
Bytes ExpectedCopy(const ReorderDesc& desc, const Bytes& src, Bytes dst) {
  const int64_t size = SizeOf(desc.src.data_type());
  const SeparableOffsets from(desc.src), to(desc.dst);
  ForEachIndex(desc.src.dims(), [&](const Dims& index) {
    std::memcpy(&dst[to.Offset(index) * size], &src[from.Offset(index) * size], size);
  });
  ZeroPadding(desc.dst, dst.data());
  return dst;
}

// Every implementation that takes `desc` must write the expected bytes; returns how many took it.
int CheckCopies(const ReorderDesc& desc) {
  const Bytes src = RandomTensor(desc.src, 1), before = Garbage(desc.dst, 2);
  const Bytes expected = ExpectedCopy(desc, src, before);
  int taken = 0;
  for (const Implementation<ReorderDesc>& row : ReorderImplementations()) {
    if (!cpu::Supports(row.isa)) continue;
    const auto primitive = CreateReorder(desc, {}, {.only = row.name});
    CountCase(row.name, primitive.ok());
    if (absl::IsUnimplemented(primitive.status())) continue;
    EXPECT_THAT(primitive, IsOk());
    if (!primitive.ok()) continue;
    EXPECT_EQ((*primitive)->name(), row.name);
    ++taken;
    Bytes dst = before;
    ExecuteArgs args;
    args.Set(kArgSrc, src.data()).Set(kArgDst, dst.data());
    EXPECT_THAT((*primitive)->Execute(args, threading::Team::Serial()), IsOk());
    EXPECT_TRUE(PaddingIsZero(desc.dst, dst.data()));
    EXPECT_TRUE(dst == expected) << row.name << ": " << desc.src.ToString() << " -> "
                                 << desc.dst.ToString();
  }
  return taken;
}

constexpr absl::string_view kOrder = "abcdef";
constexpr int64_t kChannels[] = {1, 3, 15, 16, 17, 24, 32, 33, 40};
// Below, at and above a tile of 8 and of 16 pixels; sizes of one; more than one run of pixels.
const Dims kSpatial[] = {{1},    {5},     {16},     {37},      {1, 1},    {7, 7},
                         {1, 9}, {13, 1}, {33, 41}, {1, 1, 1}, {3, 2, 5}, {2, 5, 9}};

std::vector<std::string> ActivationTags(size_t spatial_rank) {
  const std::string spatial = std::string("dhw").substr(3 - spatial_rank);
  return {"nc" + spatial,        "n" + spatial + "c",   "nC" + spatial + "16c",
          "nC" + spatial + "8c", "nC" + spatial + "4c", "NC" + spatial + "16n16c"};
}

TEST(ReorderTest, EveryPairOfActivationTags) {
  for (const Dims& spatial : kSpatial) {
    for (int64_t channels : kChannels) {
      Dims dims = {2, channels};
      dims.insert(dims.end(), spatial.begin(), spatial.end());
      for (const std::string& from : ActivationTags(spatial.size())) {
        for (const std::string& to : ActivationTags(spatial.size())) {
          EXPECT_GE(CheckCopies({Make(dims, from), Make(dims, to)}), 2);
        }
      }
    }
  }
}

TEST(ReorderTest, GeneratedImplementationsTakeWhatTheyAreFor) {
  int visited = 0;
  for (const Implementation<ReorderDesc>& row : ReorderImplementations()) {
    if (row.traits.algorithm != reorder::kChannelBlocking) continue;
    ++visited;
    for (const char* plain : {"nchw", "nhwc"}) {
      for (const char* blocked : {"nChw16c", "nChw8c"}) {
        for (int64_t channels : kChannels) {
          const ReorderDesc to{Make({1, channels, 5, 5}, plain),
                               Make({1, channels, 5, 5}, blocked)};
          const ReorderDesc from{to.dst, to.src};
          EXPECT_THAT(row.resolve({to, {}, row}), IsOk()) << row.name;
          EXPECT_THAT(row.resolve({from, {}, row}), IsOk()) << row.name;
        }
      }
    }
  }
  EXPECT_EQ(visited, 2) << "one for AVX2 and one for AVX-512";
}

// Every order of the dimensions of a plain tensor, as Transpose asks for it, in generated code
// wherever the neighbours change.
TEST(ReorderTest, EveryOrderOfDimensions) {
  for (const Dims& sizes :
       {Dims{37, 19}, Dims{84, 1100}, Dims{3, 18, 33}, Dims{2, 3, 17, 20}, Dims{2, 3, 4, 5, 18}}) {
    std::vector<int> order(sizes.size());
    std::iota(order.begin(), order.end(), 0);
    do {
      Dims dims;
      for (int d : order) dims.push_back(sizes[d]);
      for (DataType type : {DataType::kF32, DataType::kU8}) {
        const MemoryDesc src =
            MemoryDesc::CreatePattern(sizes, type, kOrder.substr(0, sizes.size()))
                .value()
                .Permuted(order)
                .value();
        const MemoryDesc dst =
            MemoryDesc::CreatePattern(dims, type, kOrder.substr(0, sizes.size())).value();
        const bool moves = order.back() != static_cast<int>(sizes.size()) - 1;
        const bool is_generated = moves && cpu::Supports(cpu::Isa::kAvx2);
        EXPECT_GE(CheckCopies({src, dst}), is_generated ? 3 : 2) << src.ToString();
      }
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

// Packed for inner products, in generated code: io, hwio, and dimensions in another order.
TEST(ReorderTest, WeightsWhoseOutputsAreNeighbours) {
  const struct {
    const char *from, *to;
    Dims inputs;
  } cases[] = {{"ba", "Ab", {1}},
               {"ba", "Ab", {70}},
               {"ba", "Ab", {2048}},
               {"bca", "Abc", {5, 7}},
               {"cba", "Abc", {5, 67}},
               {"cdba", "Acdb", {20, 3, 5}},
               {"cdba", "Abcd", {20, 3, 5}},
               {"bcdea", "Aebdc", {2, 3, 4, 9}}};
  for (const auto& [from, to, inputs] : cases) {
    for (int64_t outputs : kChannels) {
      Dims dims = {outputs};
      dims.insert(dims.end(), inputs.begin(), inputs.end());
      for (DataType type : {DataType::kF32, DataType::kU8}) {
        for (const char* block : {"16a", "8a"}) {
          const MemoryDesc src = MemoryDesc::CreatePattern(dims, type, from).value();
          const MemoryDesc dst =
              MemoryDesc::CreatePattern(dims, type, absl::StrCat(to, block)).value();
          EXPECT_GE(CheckCopies({src, dst}), cpu::Supports(cpu::Isa::kAvx2) ? 3 : 2)
              << src.ToString() << dst.ToString();
        }
      }
    }
  }
}

TEST(ReorderTest, StridedViewsOfBothSides) {
  const MemoryDesc whole = Make({3, 48, 9, 11}, "nchw"), last = Make({3, 48, 9, 11}, "nhwc");
  const MemoryDesc blocked = Make({3, 40, 9, 11}, "nChw16c");
  for (const Dims& part : {Dims{2, 24, 9, 11}, Dims{1, 24, 4, 5}, Dims{3, 24, 1, 7}}) {
    const MemoryDesc to = *blocked.SubMemory(part, {0, 16, 0, 0});
    for (const MemoryDesc* plain : {&whole, &last}) {
      const MemoryDesc from = *plain->SubMemory(part, {0, 5, 0, 1 * (part[3] < 10)});
      EXPECT_GE(CheckCopies({from, to}), 2);
      EXPECT_GE(CheckCopies({to, from}), 2);
    }
  }
  const MemoryDesc odd =
      *MemoryDesc::CreateStrided({2, 17, 3, 3}, DataType::kF32, {1000, 41, 11, 3});
  EXPECT_EQ(CheckCopies({odd, Make({2, 17, 3, 3}, "nChw8c")}), 2);
  EXPECT_EQ(CheckCopies({Make({2, 17, 3, 3}, "nChw8c"), odd}), 2);
  const MemoryDesc repeated =
      *MemoryDesc::CreateStrided({2, 17, 3, 3}, DataType::kF32, {0, 9, 3, 1});
  EXPECT_GE(CheckCopies({repeated, Make({2, 17, 3, 3}, "nChw16c")}), 2);
}

TEST(ReorderTest, EveryWeightsTagBothWays) {
  for (const FormatTagRow& row : FormatTags()) {
    SCOPED_TRACE(row.name);
    const int rank = FormatTagRank(row.tag);
    const bool grouped = rank == 6 || row.name[0] == 'g' || row.name[0] == 'G';
    Dims dims = grouped ? Dims{3, 17, 6} : Dims{17, 20};
    while (static_cast<int>(dims.size()) < rank) dims.push_back(3);
    dims.resize(rank);
    const std::string plain = std::string("abcdef").substr(0, rank);
    for (DataType type : {DataType::kF32, DataType::kS8}) {
      EXPECT_GE(CheckCopies({Make(dims, plain, type), Make(dims, row.name, type)}), 2);
      EXPECT_GE(CheckCopies({Make(dims, row.name, type), Make(dims, plain, type)}), 2);
    }
  }
  for (const char* from : {"OIhw16i16o", "OIhw4i16o4i", "Ohwi32o", "hwio", "OIhw2o8i8o2i"}) {
    for (const char* to : {"OIhw8i8o", "IOhw8o16i2o", "Oihw4o", "ohwi"}) {
      EXPECT_GE(CheckCopies({Make({33, 19, 3, 3}, from), Make({33, 19, 3, 3}, to)}), 2);
    }
  }
}

TEST(ReorderTest, TensorsWithoutElements) {
  EXPECT_GE(CheckCopies({Make({0, 17, 5, 5}, "nchw"), Make({0, 17, 5, 5}, "nChw16c")}), 2);
  EXPECT_GE(CheckCopies({Make({1, 17, 0, 5}, "nhwc"), Make({1, 17, 0, 5}, "nChw8c")}), 2);
  EXPECT_GE(CheckCopies({Make({1, 0, 2, 5}, "nChw8c"), Make({1, 0, 2, 5}, "nchw")}), 2);
}

template <typename To, typename From>
std::vector<To> Convert(std::vector<From> values, DataType from, DataType to,
                        const Attributes& attributes = {}, std::vector<To> before = {}) {
  const int64_t count = static_cast<int64_t>(values.size());
  const auto primitive =
      CreateReorder({Make({count}, "x", from), Make({count}, "x", to)}, attributes, {});
  EXPECT_THAT(primitive, IsOk());
  before.resize(values.size());
  ExecuteArgs args;
  args.Set(kArgSrc, values.data()).Set(kArgDst, before.data());
  if (!primitive.ok()) return before;
  EXPECT_THAT((*primitive)->Execute(args, threading::Team::Serial()), IsOk());
  return before;
}

const float kNan = std::numeric_limits<float>::quiet_NaN();
const float kInfinity = std::numeric_limits<float>::infinity();

TEST(ReorderTest, IntegersRoundToNearestEvenAndSaturate) {
  const std::vector<float> values = {0.5f,   1.5f,      2.5f,       -0.5f, -1.5f,  127.4f,
                                     127.5f, 200,       -128.5f,    -1000, 255.5f, 3e9f,
                                     -3e9f,  kInfinity, -kInfinity, kNan};
  const auto kF32 = DataType::kF32;
  EXPECT_EQ((Convert<int8_t, float>(values, kF32, DataType::kS8)),
            (std::vector<int8_t>{0, 2, 2, 0, -2, 127, 127, 127, -128, -128, 127, 127, -128, 127,
                                 -128, 0}));
  EXPECT_EQ((Convert<uint8_t, float>(values, kF32, DataType::kU8)),
            (std::vector<uint8_t>{0, 2, 2, 0, 0, 127, 128, 200, 0, 0, 255, 255, 0, 255, 0, 0}));
  EXPECT_EQ((Convert<int32_t, float>(values, kF32, DataType::kS32)),
            (std::vector<int32_t>{0, 2, 2, 0, -2, 127, 128, 200, -128, -1000, 256, INT32_MAX,
                                  INT32_MIN, INT32_MAX, INT32_MIN, 0}));
  EXPECT_EQ((Convert<uint8_t, int8_t>({-1, 5, 127}, DataType::kS8, DataType::kU8)),
            (std::vector<uint8_t>{0, 5, 127}));
  EXPECT_EQ((Convert<int8_t, int32_t>({-1000, 5, 1 << 30}, DataType::kS32, DataType::kS8)),
            (std::vector<int8_t>{-128, 5, 127}));
}

TEST(ReorderTest, HalfTypesRoundToNearestEven) {
  const std::vector<float> values = {1,     1 + 0x1p-11f, 1 + 0x3p-11f, 65504,
                                     65520, 0x1p-24f,     -0.0f,        kInfinity};
  EXPECT_EQ(
      (Convert<uint16_t, float>(values, DataType::kF32, DataType::kF16)),
      (std::vector<uint16_t>{0x3C00, 0x3C00, 0x3C02, 0x7BFF, 0x7C00, 0x0001, 0x8000, 0x7C00}));
  EXPECT_EQ(
      (Convert<float, uint16_t>({0x3C00, 0x7BFF, 0x0001, 0x8000}, DataType::kF16, DataType::kF32)),
      (std::vector<float>{1, 65504, 0x1p-24f, -0.0f}));
  const std::vector<float> wide = {1, 1 + 0x1p-8f, 1 + 0x3p-8f, 3.4028235e38f, -2.5f};
  EXPECT_EQ((Convert<uint16_t, float>(wide, DataType::kF32, DataType::kBf16)),
            (std::vector<uint16_t>{0x3F80, 0x3F80, 0x3F82, 0x7F80, 0xC020}));
  EXPECT_EQ((Convert<float, uint16_t>({0x3F80, 0xC020}, DataType::kBf16, DataType::kF32)),
            (std::vector<float>{1, -2.5f}));
  for (DataType half : {DataType::kF16, DataType::kBf16}) {
    const auto bits = Convert<uint16_t, float>({kNan}, DataType::kF32, half);
    EXPECT_TRUE(std::isnan((Convert<float, uint16_t>(bits, half, DataType::kF32))[0]));
  }
}

TEST(ReorderTest, ScalesAndSum) {
  Attributes attributes;
  attributes.output_scales = {1, {2.0f, -1.0f, 0.5f}};
  ASSERT_THAT(attributes.post_ops.Append(SumPostOp{10}), IsOk());
  EXPECT_EQ(
      (Convert<float, float>({1, 2, 3}, DataType::kF32, DataType::kF32, attributes, {1, 1, 2})),
      (std::vector<float>{12, 8, 21.5f}));
  EXPECT_EQ(
      (Convert<int8_t, float>({1, 2, 3}, DataType::kF32, DataType::kS8, attributes, {1, 1, 20})),
      (std::vector<int8_t>{12, 8, 127}));
}

TEST(ReorderTest, ScalesAlongChannelsOfABlockedDestination) {
  const ReorderDesc desc{Make({2, 17, 3, 3}, "nchw"),
                         Make({2, 17, 3, 3}, "nChw16c", DataType::kS8)};
  Attributes attributes;
  attributes.output_scales.mask = 2;
  attributes.output_scales.scales.clear();
  for (int c = 0; c < 17; ++c) attributes.output_scales.scales.push_back(c + 1);
  const std::vector<float> src(desc.src.ElementCount(), 1.0f);
  Bytes dst = Garbage(desc.dst, 3);
  ASSERT_OK_AND_ASSIGN(const auto primitive, CreateReorder(desc, attributes, {}));
  ExecuteArgs args;
  args.Set(kArgSrc, src.data()).Set(kArgDst, dst.data());
  ASSERT_THAT(primitive->Execute(args, threading::Team::Serial()), IsOk());
  for (int64_t c = 0; c < 17; ++c) EXPECT_EQ(dst[desc.dst.Offset({1, c, 2, 1})], c + 1);
  EXPECT_TRUE(PaddingIsZero(desc.dst, dst.data()));
}

TEST(ReorderTest, WhatCannotBeIsRefusedAtCreation) {
  const MemoryDesc nchw = Make({1, 3, 4, 4}, "nchw");
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(CreateReorder({nchw, Make({1, 3, 4, 5}, "nchw")}, {}, {}),
              StatusIs(kInvalid, "does not match"));
  EXPECT_THAT(CreateReorder({nchw, MemoryDesc()}, {}, {}), StatusIs(kInvalid, "dst has no layout"));
  EXPECT_THAT(CreateReorder({*MemoryDesc::CreateAny({1, 3, 4, 4}, DataType::kF32), nchw}, {}, {}),
              StatusIs(kInvalid, "src has no layout"));
  const MemoryDesc overlapping =
      *MemoryDesc::CreateStrided({1, 3, 4, 4}, DataType::kF32, {48, 16, 3, 1});
  EXPECT_THAT(CreateReorder({nchw, overlapping}, {}, {}), StatusIs(kInvalid, "overlap"));
  EXPECT_THAT(CreateReorder({overlapping, nchw}, {}, {}), IsOk());
  Attributes attributes;
  attributes.output_scales = {2, {1, 2}};
  EXPECT_THAT(CreateReorder({nchw, nchw}, attributes, {}), StatusIs(kInvalid, "output scales"));
  attributes.output_scales = {16, {1}};
  EXPECT_THAT(CreateReorder({nchw, nchw}, attributes, {}), StatusIs(kInvalid, "mask"));
  attributes.output_scales = {0, {kNan}};
  EXPECT_THAT(CreateReorder({nchw, nchw}, attributes, {}), StatusIs(kInvalid, "finite"));
  Attributes twice;
  ASSERT_THAT(twice.post_ops.Append(SumPostOp{1}), IsOk());
  ASSERT_THAT(twice.post_ops.Append(SumPostOp{1}), IsOk());
  EXPECT_THAT(CreateReorder({nchw, nchw}, twice, {}),
              StatusIs(absl::StatusCode::kUnimplemented, "one sum"));
}

TEST(ReorderTest, WinogradWeightsAreTransformedAndPaddedWithZeros) {
  constexpr int64_t kOutputs = 37, kInputs = 5;  // two panels of 16 x 2, the second of one block
  const Dims dims = {kOutputs, kInputs, 3, 3};
  for (int tile : {2, 4}) {
    const WinogradLayout layout{.tile = tile, .lanes = 16, .panel_blocks = 2};
    const MemoryDesc dst_desc = *MemoryDesc::CreateWinograd(dims, layout);
    const int last = layout.points() - 1;
    // At the points 0 and infinity a filter is its first tap, scaled, and its last.
    const double at_zero = tile == 2 ? 1 : 1 / (0.390625 * 2.25) / (0.390625 * 2.25);
    std::vector<float> first;
    for (const char* tag : {"oihw", "hwio", "OIhw16i16o"}) {
      const MemoryDesc src_desc = Make(dims, tag);
      std::vector<float> src(src_desc.SizeBytes() / sizeof(float));
      Dims index(4, 0);
      for (int64_t i = 0; i < src_desc.ElementCount(); ++i) {
        src[src_desc.Offset(index)] = static_cast<float>(i + 1);
        for (int d = 3; d >= 0 && ++index[d] == dims[d]; --d) index[d] = 0;
      }
      std::vector<float> dst(dst_desc.SizeBytes() / sizeof(float), kNan);
      const auto primitive =
          CreateReorder({src_desc, dst_desc}, {}, {.max_isa = cpu::Isa::kBaseline});
      ASSERT_THAT(primitive, IsOk());
      ExecuteArgs args;
      args.Set(kArgSrc, src.data()).Set(kArgDst, dst.data());
      ASSERT_THAT((*primitive)->Execute(args, threading::Team::Serial()), IsOk());
      for (int64_t o = 0; o < 48; ++o) {
        for (int64_t i = 0; i < 16; ++i) {
          const int64_t panel = o / 32, width = panel == 0 ? 32 : 16;
          const auto at = [&](int point) {
            return dst[layout.MatrixOffset(kOutputs, kInputs, panel, point) + i * width + o % 32];
          };
          const bool real = o < kOutputs && i < kInputs;
          const double tap = real ? (o * kInputs + i) * 9 + 1 : 0;
          EXPECT_FLOAT_EQ(at(0), tap * at_zero);
          EXPECT_FLOAT_EQ(at(last), real ? tap + 8 : 0);
        }
      }
      if (first.empty()) first = dst;
      EXPECT_EQ(dst, first) << tag;
    }
  }
}

// Channels below, at and above blocks of 8 and 16; panels of one block and of two.
TEST(ReorderTest, GeneratedWinogradWeightsHaveTheBitsOfThePlainOnes) {
  for (const Dims& dims : {Dims{37, 5, 3, 3}, Dims{7, 24, 3, 3}, Dims{64, 33, 3, 3}}) {
    for (const WinogradLayout& layout :
         {WinogradLayout{2, 16, 2}, {4, 16, 2}, {2, 8, 2}, {4, 8, 2}, {4, 16, 1}}) {
      const ReorderDesc desc{
          *Make({dims[0] + 2, dims[1], 3, 3}, "oihw").SubMemory(dims, {1, 0, 0, 0}),
          *MemoryDesc::CreateWinograd(dims, layout)};
      std::vector<float> src(desc.src.SizeBytes() / sizeof(float));
      FillUniform(absl::MakeSpan(src), 1);
      std::vector<float> first;
      int taken = 0;
      for (const Implementation<ReorderDesc>& row : ReorderImplementations()) {
        if (!cpu::Supports(row.isa) || !row.resolve({desc, {}, row}).ok()) continue;
        ASSERT_OK_AND_ASSIGN(const auto primitive, CreateReorder(desc, {}, {.only = row.name}));
        std::vector<float> dst(desc.dst.SizeBytes() / sizeof(float), kNan);
        ExecuteArgs args;
        args.Set(kArgSrc, src.data()).Set(kArgDst, dst.data());
        ASSERT_THAT(primitive->Execute(args, threading::Team::Serial()), IsOk());
        if (first.empty()) first = dst;
        EXPECT_TRUE(dst == first) << row.name << ": " << desc.dst.ToString();
        ++taken;
      }
      EXPECT_EQ(taken, cpu::Supports(layout.lanes == 16 ? cpu::Isa::kAvx512 : cpu::Isa::kAvx2) + 1);
    }
  }
}

// Blocks of output channels, and squares of both channels, give the bits of plain weights: input
// channels below, at and above a block.
TEST(ReorderTest, WinogradWeightsOfBlocksHaveTheBitsOfPlainOnes) {
  for (int lanes : {8, 16}) {
    const cpu::Isa isa = lanes == 16 ? cpu::Isa::kAvx512 : cpu::Isa::kAvx2;
    if (!cpu::Supports(isa)) continue;
    const auto run = [isa](const ReorderDesc& desc, std::vector<float>& src) {
      const auto primitive = CreateReorder(desc, {}, {.max_isa = isa});
      EXPECT_THAT(primitive, IsOk());
      if (desc.dst.format_kind() == FormatKind::kWinograd) {
        EXPECT_GT((*primitive)->info().code_bytes, 0) << (*primitive)->name();
      }
      std::vector<float> dst(desc.dst.SizeBytes() / sizeof(float), kNan);
      ExecuteArgs args;
      args.Set(kArgSrc, src.data()).Set(kArgDst, dst.data());
      EXPECT_THAT((*primitive)->Execute(args, threading::Team::Serial()), IsOk());
      return dst;
    };
    const std::string in_lanes = absl::StrCat("Abcd", lanes, "a");
    const std::string in_squares = absl::StrCat("ABcd", lanes, "b", lanes, "a");
    for (const auto& [pattern, outputs] :
         {std::pair{in_lanes, 3 * lanes}, {in_squares, 3 * lanes}, {in_squares, 2 * lanes + 5}}) {
      for (int64_t inputs : {1, 5, 16, 33}) {
        for (int tile : {2, 4}) {
          const Dims dims = {outputs, inputs, 3, 3};
          const MemoryDesc plain = Make(dims, "oihw");
          const MemoryDesc in_blocks = *MemoryDesc::CreatePattern(dims, DataType::kF32, pattern);
          const MemoryDesc winograd = *MemoryDesc::CreateWinograd(dims, {tile, lanes, 2});
          std::vector<float> weights(plain.ElementCount());
          FillUniform(absl::MakeSpan(weights), 1);
          std::vector<float> blocked = run({plain, in_blocks}, weights);
          EXPECT_TRUE(run({plain, winograd}, weights) == run({in_blocks, winograd}, blocked))
              << pattern << ", " << inputs << " inputs, tile " << tile;
        }
      }
    }
  }
}

// Weights as convolutions and inner products pack them when a model is loaded: tails of channels, a
// run of more elements than one piece of work, groups, one channel a group.
TEST(ReorderTest, GeneratedRowsPackWeights) {
  struct {
    Dims dims;
    const char *plain, *packed;
  } const kCases[] = {
      {{17, 20, 3, 3}, "oihw", "OIhw16i16o"},      {{33, 130, 3, 3}, "oihw", "OIhw16i16o"},
      {{64, 40, 1, 1}, "oihw", "OIhw16i16o"},      {{20, 3, 7, 7}, "oihw", "Ohwi16o"},
      {{2, 17, 20, 3, 3}, "goihw", "gOIhw16i16o"}, {{40, 1, 1, 3, 3}, "goihw", "Goihw16g"},
      {{17, 20, 3, 3}, "oihw", "OIhw8i8o"},        {{20, 3, 7, 7}, "oihw", "Ohwi8o"},
      {{40, 1, 1, 3, 3}, "goihw", "Goihw8g"},      {{17, 20, 2, 3, 3}, "oidhw", "OIdhw16i16o"},
  };
  for (const auto& one : kCases) {
    const ReorderDesc desc{Make(one.dims, one.plain), Make(one.dims, one.packed)};
    EXPECT_GE(CheckCopies(desc), 2);
    const bool wide = absl::StrContains(one.packed, "16");
    int visited = 0;
    for (const Implementation<ReorderDesc>& row : ReorderImplementations()) {
      if (row.traits.algorithm != reorder::kWeightsPacking) continue;
      if (row.isa != (wide ? cpu::Isa::kAvx512 : cpu::Isa::kAvx2)) continue;
      EXPECT_THAT(row.resolve({desc, {}, row}), IsOk()) << row.name << ": " << one.packed;
      ++visited;
    }
    EXPECT_EQ(visited, 1) << one.packed;
  }
}

TEST(ReorderTest, NobodyReadsWinogradWeights) {
  const MemoryDesc winograd = *MemoryDesc::CreateWinograd({16, 16, 3, 3}, {4, 16, 2});
  EXPECT_THAT(CreateReorder({winograd, Make({16, 16, 3, 3}, "oihw")}, {}, {}),
              StatusIs(absl::StatusCode::kUnimplemented, "Winograd"));
  EXPECT_THAT(CreateReorder({winograd, winograd}, {}, {}),
              StatusIs(absl::StatusCode::kUnimplemented, "Winograd"));
}

TEST(ReorderTest, ManyThreadsGiveTheSameBytes) {
  threading::Arena arena(4);
  const threading::Team team(&arena);
  for (const char* to : {"nChw16c", "nChw8c", "nhwc"}) {
    const ReorderDesc desc{Make({3, 70, 60, 50}, "nchw"), Make({3, 70, 60, 50}, to)};
    const Bytes src = RandomTensor(desc.src, 1), before = Garbage(desc.dst, 2);
    for (const Implementation<ReorderDesc>& row : ReorderImplementations()) {
      if (!cpu::Supports(row.isa) || !row.resolve({desc, {}, row}).ok()) continue;
      ASSERT_OK_AND_ASSIGN(const auto primitive, CreateReorder(desc, {}, {.only = row.name}));
      Bytes serial = before, parallel = before;
      ExecuteArgs args;
      args.Set(kArgSrc, src.data()).Set(kArgDst, serial.data());
      ASSERT_THAT(primitive->Execute(args, threading::Team::Serial()), IsOk());
      args.Set(kArgDst, parallel.data());
      ASSERT_THAT(primitive->Execute(args, team), IsOk());
      EXPECT_TRUE(serial == parallel) << row.name << " to " << to;
    }
  }
}

}  // namespace
}  // namespace tilewire::testing
