// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/primitives/tensors.h"

#include <string>

#include "engine/kernels/elements/element_conversion.h"
#include "engine/memory/narrow_floats.h"
#include "engine/memory/separable_offsets.h"
#include "gtest/gtest.h"
#include "tests/support/padded_tail.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {
namespace {

// Row-major with a hole after each row, each image and so on.
MemoryDesc WithGaps(const Dims& dims, DataType type) {
  Dims strides(dims.size());
  int64_t step = 2;
  for (int d = static_cast<int>(dims.size()) - 1; d >= 0; --d) {
    strides[d] = step;
    step = step * dims[d] + 1;
  }
  return *MemoryDesc::CreateStrided(dims, type, strides);
}

// The first channels of a wider tensor, from its second image on.
MemoryDesc PartOf(const Dims& dims, absl::string_view pattern, int64_t channels, DataType type) {
  Dims whole = dims, offsets(dims.size(), 0);
  whole[0] += 1;
  whole[1] += channels;
  offsets[0] = 1;
  offsets[1] = channels;
  return *MemoryDesc::CreatePattern(whole, type, pattern)->SubMemory(dims, offsets);
}

// Bytes that belong to no element, nor to the padded tail, hold what they held.
bool OutsideIsUntouched(const MemoryDesc& desc, const Bytes& before, Bytes after) {
  const int64_t size = SizeOf(desc.data_type());
  if (desc.SizeBytes() == desc.PaddedElementCount() * size) return true;  // nothing outside
  const SeparableOffsets offsets(desc);
  ForEachIndex(desc.padded_dims(), [&](const Dims& index) {
    const int64_t at = offsets.Offset(index) * size;
    std::memcpy(&after[at], &before[at], size);
  });
  return before == after;
}

}  // namespace

Bytes RandomTensor(const MemoryDesc& desc, uint64_t seed, float range) {
  Bytes bytes = Garbage(desc, seed + 1);
  const DataType type = desc.data_type();
  const bool integer = SizeOf(type) == 1 || type == DataType::kS32;
  Random random(seed);
  const SeparableOffsets offsets(desc);
  ForEachIndex(desc.dims(), [&](const Dims& index) {
    const uint64_t bits = random.Next();
    if (integer) return CopyElement(type, &bits, 0, bytes.data(), offsets.Offset(index));
    StoreElement(type, random.Uniform(-range, range), bytes.data(), offsets.Offset(index));
  });
  ZeroPadding(desc, bytes.data());
  return bytes;
}

std::vector<uint32_t> ElementBits(const MemoryDesc& desc, const Bytes& bytes) {
  std::vector<uint32_t> all;
  const SeparableOffsets offsets(desc);
  ForEachIndex(desc.dims(), [&](const Dims& index) {
    uint32_t bits = 0;
    CopyElement(desc.data_type(), bytes.data(), offsets.Offset(index), &bits, 0);
    all.push_back(bits);
  });
  return all;
}

std::vector<float> ElementValues(const MemoryDesc& desc, const Bytes& bytes) {
  std::vector<float> all;
  const SeparableOffsets offsets(desc);
  ForEachIndex(desc.dims(), [&](const Dims& index) {
    all.push_back(LoadElement(desc.data_type(), bytes.data(), offsets.Offset(index)));
  });
  return all;
}

std::vector<uint32_t> BitsAs(DataType type, const std::vector<float>& values) {
  std::vector<uint32_t> all(values.size(), 0);
  for (size_t i = 0; i < values.size(); ++i) StoreElement(type, values[i], &all[i], 0);
  return all;
}

MemoryDesc Plain(const Dims& dims, DataType type) {
  return *MemoryDesc::CreatePattern(dims, type,
                                    absl::string_view("abcdefghijkl").substr(0, dims.size()));
}

MemoryDesc Tagged(const Dims& dims, absl::string_view tag, DataType type) {
  return *MemoryDesc::Create(dims, type, *ParseFormatTag(tag));
}

Bytes PackRounded(const MemoryDesc& desc, const std::vector<float>& values) {
  if (desc.data_type() != DataType::kBf16) return Pack(desc, values);
  std::vector<uint16_t> rounded;
  for (float value : values) rounded.push_back(ToBf16(value));
  return Pack(desc, rounded);
}

std::vector<Layout> LayoutsOf(const Dims& dims, DataType type) {
  const std::string spatial = std::string("cdefg").substr(0, dims.size() - 2);
  const auto pattern = [&](const std::string& letters) {
    return *MemoryDesc::CreatePattern(dims, type, letters);
  };
  return {
      {"channels outside: nchw", Plain(dims, type)},
      {"channels innermost: nhwc", pattern("a" + spatial + "b")},
      {"nChw16c", pattern("aB" + spatial + "16b")},
      {"nChw8c", pattern("aB" + spatial + "8b")},
      {"images and channels blocked", pattern("AB" + spatial + "16a16b")},
      {"images innermost: chwn", pattern("b" + spatial + "a")},
      {"strides with gaps", WithGaps(dims, type)},
      {"part of a wider nchw", PartOf(dims, "ab" + spatial, 3, type)},
      {"part of a wider nChw8c", PartOf(dims, "aB" + spatial + "8b", 8, type)},
  };
}

MemoryDesc ChannelsLastWithGaps(const Dims& dims, int64_t gap, int64_t row_gap) {
  const int64_t pixel = dims[1] + gap, row = dims[3] * pixel + row_gap;
  return *MemoryDesc::CreateStrided(dims, DataType::kF32, {dims[2] * row, 1, row, pixel});
}

std::vector<Dims> ImageDims() {
  std::vector<Dims> all;
  for (int64_t channels : {1, 3, 15, 16, 17, 24, 33, 40}) {
    all.push_back({2, channels, 5});
    all.push_back({2, channels, 3, 4});
    all.push_back({1, channels, 2, 1, 3});
  }
  return all;
}

Bytes Execute(const Primitive& primitive, const Inputs& inputs, int output, Bytes before,
              const threading::Team& team) {
  Bytes dst = before;
  ExecuteArgs args;
  for (const auto& [arg, bytes] : inputs) args.Set(arg, bytes->data());
  args.Set(output, dst.data());
  absl::StatusOr<AlignedBuffer> scratchpad =
      AlignedBuffer::Allocate(primitive.ScratchpadDesc().SizeBytes());
  EXPECT_THAT(scratchpad, IsOk());
  args.Set(kArgScratchpad, scratchpad->data());
  EXPECT_THAT(primitive.Execute(args, team), IsOk());
  const MemoryDesc& desc = primitive.Desc(output);
  EXPECT_TRUE(PaddingIsZero(desc, dst.data())) << primitive.name() << " " << desc.ToString();
  EXPECT_TRUE(OutsideIsUntouched(desc, before, dst)) << primitive.name() << " " << desc.ToString();
  return dst;
}

}  // namespace tilewire::testing
