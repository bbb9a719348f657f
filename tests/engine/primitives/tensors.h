// SPDX-License-Identifier: Apache-2.0
//
// Tensors of the tests of primitives: logical row-major values, packed into any layout and back.
// What lies between the elements of a source is garbage, its padded tail is zero.
#ifndef TESTS_ENGINE_PRIMITIVES_TENSORS_H_
#define TESTS_ENGINE_PRIMITIVES_TENSORS_H_

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "engine/memory/index_walk.h"
#include "engine/memory/memory_desc.h"
#include "engine/memory/separable_offsets.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/primitive.h"
#include "tests/support/random_tensor.h"

namespace tilewire::testing {

using Bytes = std::vector<uint8_t>;

inline Bytes Garbage(const MemoryDesc& desc, uint64_t seed) {
  Bytes bytes(desc.SizeBytes());
  FillGarbage(bytes.data(), bytes.size(), seed);
  return bytes;
}

template <typename T>
Bytes Pack(const MemoryDesc& desc, const std::vector<T>& values) {
  Bytes bytes = Garbage(desc, 99);
  const T* from = values.data();
  const SeparableOffsets offsets(desc);
  ForEachIndex(desc.dims(), [&](const Dims& index) {
    std::memcpy(&bytes[offsets.Offset(index) * sizeof(T)], from++, sizeof(T));
  });
  ZeroPadding(desc, bytes.data());
  return bytes;
}

template <typename T>
std::vector<T> Unpack(const MemoryDesc& desc, const Bytes& bytes) {
  std::vector<T> values;
  values.reserve(desc.ElementCount());
  const SeparableOffsets offsets(desc);
  ForEachIndex(desc.dims(), [&](const Dims& index) {
    T value;
    std::memcpy(&value, &bytes[offsets.Offset(index) * sizeof(T)], sizeof(T));
    values.push_back(value);
  });
  return values;
}

// Rounded to the type of the layout, f32 or bf16.
Bytes PackRounded(const MemoryDesc& desc, const std::vector<float>& values);

// The bits of floats: tells -0 from 0, and NaN equals NaN.
inline std::vector<uint32_t> BitsOf(const std::vector<float>& values) {
  std::vector<uint32_t> bits(values.size());
  if (!bits.empty()) std::memcpy(bits.data(), values.data(), bits.size() * sizeof(float));
  return bits;
}

// Offsets in a tensor that is broadcast: 0 along its dimensions of size 1, whatever the index says.
class BroadcastOffsets {
 public:
  explicit BroadcastOffsets(const MemoryDesc& desc) : dims_(desc.dims()), offsets_(desc) {}

  int64_t Offset(const Dims& index) const {
    int64_t offset = offsets_.base();
    for (size_t d = 0; d < dims_.size(); ++d) {
      if (dims_[d] != 1) offset += offsets_.At(static_cast<int>(d), index[d]);
    }
    return offset;
  }

 private:
  const Dims dims_;
  const SeparableOffsets offsets_;
};

struct Layout {
  const char* why;
  MemoryDesc desc;
};

// Layouts of a [N,C,spatial...] tensor of rank 2 to 5; any can be written.
std::vector<Layout> LayoutsOf(const Dims& dims, DataType type = DataType::kF32);

// Types other than f32.
inline constexpr DataType kOtherTypes[] = {DataType::kF16, DataType::kBf16, DataType::kS32,
                                           DataType::kS8, DataType::kU8};

// A tensor of random elements: any integers, halves and floats in [-range, range). The padded tail
// is zero, what lies between elements garbage.
Bytes RandomTensor(const MemoryDesc& desc, uint64_t seed, float range = 200);

// The elements in row-major order, bit by bit; what LoadElement makes of them.
std::vector<uint32_t> ElementBits(const MemoryDesc& desc, const Bytes& bytes);
std::vector<float> ElementValues(const MemoryDesc& desc, const Bytes& bytes);
// The bits that StoreElement makes of floats.
std::vector<uint32_t> BitsAs(DataType type, const std::vector<float>& values);

// Row-major.
MemoryDesc Plain(const Dims& dims, DataType type = DataType::kF32);
// By the name of a tag: "nChw16c".
MemoryDesc Tagged(const Dims& dims, absl::string_view tag, DataType type = DataType::kF32);

// A nhwc tensor of f32 with `gap` elements after each pixel and `row_gap` more after each row.
MemoryDesc ChannelsLastWithGaps(const Dims& dims, int64_t gap, int64_t row_gap);

// Channel counts around the blocks of 8 and 16, in one, two and three spatial dimensions.
std::vector<Dims> ImageDims();

using Inputs = std::vector<std::pair<int, const Bytes*>>;

// Sources of a primitive that takes several: packed, and as its arguments.
template <typename T>
std::vector<Bytes> PackAll(const std::vector<MemoryDesc>& descs,
                           const std::vector<std::vector<T>>& values) {
  std::vector<Bytes> packed;
  for (size_t i = 0; i < values.size(); ++i) packed.push_back(Pack(descs[i], values[i]));
  return packed;
}
inline Inputs MultipleSources(const std::vector<Bytes>& packed) {
  Inputs inputs;
  for (size_t i = 0; i < packed.size(); ++i)
    inputs.emplace_back(kArgMultipleSrc + static_cast<int>(i), &packed[i]);
  return inputs;
}

// Executes on a copy of `before` as the argument `output`, and expects that the padded tail is zero
// afterwards and that bytes outside the tensor are as before.
Bytes Execute(const Primitive& primitive, const Inputs& inputs, int output, Bytes before,
              const threading::Team& team);

}  // namespace tilewire::testing

#endif  // TESTS_ENGINE_PRIMITIVES_TENSORS_H_
