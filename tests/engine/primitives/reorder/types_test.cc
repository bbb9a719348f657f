// SPDX-License-Identifier: Apache-2.0
//
// Every row that converts against the reference, bit by bit: all pairs of types, the layouts of
// activations, scales and sums.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "engine/kernels/elements/element_conversion.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/separable_offsets.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/reorder/reorder.h"
#include "gtest/gtest.h"
#include "tests/engine/primitives/cases_taken.h"
#include "tests/engine/primitives/reorder/reorder_tensors.h"
#include "tests/support/random_tensor.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {
namespace {

constexpr DataType kTypes[] = {DataType::kF32, DataType::kF16, DataType::kBf16,
                               DataType::kS32, DataType::kS8,  DataType::kU8};

bool IsInteger(DataType type) {
  return type == DataType::kS32 || type == DataType::kS8 || type == DataType::kU8;
}

// Any integers; floats of a few hundred, and what no integer can hold.
Bytes AnyNumbers(const MemoryDesc& desc, uint64_t seed) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float kSpecial[] = {std::nanf(""), kInfinity, -kInfinity, 3e9f,    -3e9f, 127.5f, 255.5f,
                            0x1p31f,       0.5f,      1.5f,       -128.5f, -0.0f, 0};
  Bytes bytes = Garbage(desc, seed);
  Random random(seed);
  const SeparableOffsets offsets(desc);
  ForEachIndex(desc.dims(), [&](const Dims& index) {
    const int64_t at = offsets.Offset(index);
    const uint64_t bits = random.Next();
    if (IsInteger(desc.data_type()))
      return CopyElement(desc.data_type(), &bits, 0, bytes.data(), at);
    const float value = bits % 5 == 0 ? kSpecial[bits / 5 % 13] : random.Uniform(-300, 300);
    StoreElement(desc.data_type(), value, bytes.data(), at);
  });
  ZeroPadding(desc, bytes.data());
  return bytes;
}

Bytes Execute(const Primitive& primitive, const Bytes& src, Bytes dst) {
  ExecuteArgs args;
  args.Set(kArgSrc, src.data()).Set(kArgDst, dst.data());
  EXPECT_THAT(primitive.Execute(args, threading::Team::Serial()), IsOk());
  return dst;
}

// Returns how many generated rows took it.
int CompareRows(const ReorderDesc& desc, const Attributes& attributes) {
  const Bytes src = AnyNumbers(desc.src, 1), before = AnyNumbers(desc.dst, 2);
  const auto reference = CreateReorder(desc, attributes, {.reference_only = true});
  EXPECT_THAT(reference, IsOk());
  if (!reference.ok()) return 0;
  const Bytes expected = Execute(**reference, src, before);
  int generated = 0;
  for (const Implementation<ReorderDesc>& row : ReorderImplementations()) {
    if (!cpu::Supports(row.isa) || row.traits.is_reference) continue;
    const auto primitive = CreateReorder(desc, attributes, {.only = row.name});
    CountCase(row.name, primitive.ok());
    if (absl::IsUnimplemented(primitive.status())) continue;
    EXPECT_THAT(primitive, IsOk());
    if (!primitive.ok()) continue;
    EXPECT_TRUE(Execute(**primitive, src, before) == expected)
        << row.name << ": " << desc.src.ToString() << " -> " << desc.dst.ToString();
    generated += row.isa != cpu::Isa::kBaseline;
  }
  return generated;
}

int GeneratedRows() {
  int rows = 0;
  for (const Implementation<ReorderDesc>& row : ReorderImplementations()) {
    const bool images = row.traits.algorithm == reorder::kDense ||
                        row.traits.algorithm == reorder::kChannelBlocking;
    rows += images && cpu::Supports(row.isa);
  }
  return rows / 2;  // one for layouts that differ, one for the same layout
}

struct NamedAttributes {
  const char* why;
  Attributes attributes;
};

std::vector<NamedAttributes> AttributesFor(int64_t channels) {
  std::vector<NamedAttributes> all(4);
  all[0].why = "no attributes";
  all[1] = {"one scale", {.output_scales = {0, {-0.37f}}}};
  all[2] = {"a scale for each channel", {.output_scales = {2, {}}}};
  for (int64_t c = 0; c < channels; ++c) {
    all[2].attributes.output_scales.scales.push_back(0.1f * static_cast<float>(c) - 0.7f);
  }
  all[3] = {"one scale and a sum", all[1].attributes};
  EXPECT_THAT(all[3].attributes.post_ops.Append(SumPostOp{0.5f}), IsOk());
  return all;
}

std::vector<std::string> Tags(size_t spatial_rank) {
  const std::string spatial = std::string("dhw").substr(3 - spatial_rank);
  return {"nc" + spatial, "n" + spatial + "c", "nC" + spatial + "16c", "nC" + spatial + "8c"};
}

void CompareTypes(const Dims& dims, absl::string_view from_tag, absl::string_view to_tag) {
  for (DataType from : kTypes) {
    for (DataType to : kTypes) {
      const ReorderDesc desc{*MemoryDesc::Create(dims, from, *ParseFormatTag(from_tag)),
                             *MemoryDesc::Create(dims, to, *ParseFormatTag(to_tag))};
      for (const NamedAttributes& one : AttributesFor(dims[1])) {
        SCOPED_TRACE(one.why);
        const bool copy = from == to && one.attributes == Attributes();
        const int generated = CompareRows(desc, one.attributes);
        if (!copy) {
          EXPECT_GE(generated, GeneratedRows())
              << desc.src.ToString() << " -> " << desc.dst.ToString();
        }
      }
    }
  }
}

TEST(ReorderTypesTest, EveryPairOfTypesInEveryPairOfLayouts) {
  for (const Dims& dims : {Dims{2, 3, 5, 7}, Dims{1, 17, 33}, Dims{1, 40, 2, 3, 2}}) {
    for (const std::string& from : Tags(dims.size() - 2)) {
      for (const std::string& to : Tags(dims.size() - 2)) CompareTypes(dims, from, to);
    }
  }
}

TEST(ReorderTypesTest, EveryNumberOfChannelsAndPixelsAroundAVector) {
  for (int64_t channels : {1, 2, 7, 8, 9, 15, 16, 24, 31, 32, 33}) {
    for (int64_t pixels : {1, 7, 8, 9, 15, 16, 17, 31, 1025}) {
      const Dims dims = {1, channels, pixels};
      for (const std::string& from : Tags(1)) {
        for (const std::string& to : Tags(1)) {
          for (DataType type : {DataType::kS8, DataType::kU8}) {
            CompareRows({*MemoryDesc::Create(dims, type, *ParseFormatTag(from)),
                         *MemoryDesc::Create(dims, DataType::kF32, *ParseFormatTag(to))},
                        {});
            CompareRows({*MemoryDesc::Create(dims, DataType::kF32, *ParseFormatTag(from)),
                         *MemoryDesc::Create(dims, type, *ParseFormatTag(to))},
                        {});
          }
        }
      }
    }
  }
}

// Weights are scaled by output channel, batches by image; masks may name several dimensions.
TEST(ReorderTypesTest, ScalesAlongAnyDimensions) {
  for (const char* tag : {"oihw", "ohwi", "hwio", "OIhw16i16o", "OIhw4i16o4i", "Oihw16o"}) {
    const Dims dims = {19, 6, 3, 2};
    for (int mask = 0; mask < 16; ++mask) {
      Attributes attributes;
      attributes.output_scales = {mask, {}};
      int64_t count = 1;
      for (int d = 0; d < 4; ++d) count *= mask >> d & 1 ? dims[d] : 1;
      for (int64_t i = 0; i < count; ++i) {
        attributes.output_scales.scales.push_back(0.01f * static_cast<float>(i + 1));
      }
      const FormatTag layout = *ParseFormatTag(tag);
      CompareRows({*MemoryDesc::Create(dims, DataType::kF32, layout),
                   *MemoryDesc::Create(dims, DataType::kS8, layout)},
                  attributes);
      CompareRows({*MemoryDesc::Create(dims, DataType::kF32, *ParseFormatTag("oihw")),
                   *MemoryDesc::Create(dims, DataType::kS8, layout)},
                  attributes);
    }
  }
}

}  // namespace
}  // namespace tilewire::testing
