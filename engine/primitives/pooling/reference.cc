// SPDX-License-Identifier: Apache-2.0
//
// The executable specification, any layout. One window after the other; floats are added in f32,
// integers in s32.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>

#include "engine/kernels/elements/element_conversion.h"
#include "engine/memory/bf16_number.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/pooling/implementations.h"
#include "engine/primitives/reference_primitive.h"

namespace tilewire::pooling {
namespace {

// The part of a window that is not padding.
struct InsideWindow {
  Dims begin, taps;  // of each axis: in src, and how many
};

InsideWindow WindowOf(const PoolingDesc& desc, const Dims& index) {
  InsideWindow window;
  for (size_t d = 0; d < desc.kernel.size(); ++d) {
    const int64_t start = index[d + 2] * desc.strides[d] - desc.padding_left[d];
    const int64_t end = std::min(start + desc.kernel[d], desc.src.dim(d + 2));
    window.begin.push_back(std::max<int64_t>(start, 0));
    window.taps.push_back(std::max<int64_t>(end - window.begin.back(), 0));
  }
  return window;
}

// With the padding. All of them may be more than 64 bits count.
float TapsOf(const PoolingDesc& desc) {
  double taps = 1;
  for (int64_t kernel : desc.kernel) taps *= static_cast<double>(kernel);
  return static_cast<float>(taps);
}

// Pools the window of dst element `index`; its elements, of type T, in row-major order.
template <typename T>
void PoolWindow(const PoolingDesc& desc, const T* src, const Dims& index, void* dst) {
  using Number = std::conditional_t<std::is_same_v<T, Bf16Number>, float, T>;
  constexpr bool kIsFloat = std::is_same_v<Number, float>;
  const int64_t dst_offset = desc.dst.Offset(index);
  const InsideWindow window = WindowOf(desc, index);
  using Limits = std::numeric_limits<Number>;
  Number highest = kIsFloat ? -Limits::infinity() : Limits::lowest();
  std::conditional_t<kIsFloat, float, uint32_t> sum = 0;  // s32 that may wrap around
  int64_t count = 0;
  Dims at = index;
  ForEachOperation(window.taps, [&](const Dims& tap) {
    for (size_t d = 0; d < tap.size(); ++d) at[d + 2] = window.begin[d] + tap[d];
    const Number value = src[desc.src.Offset(at)];
    // A NaN, once seen, stays: it compares false.
    highest = value <= highest || highest != highest ? highest : value;
    sum += value;
    ++count;
  });
  if (desc.algorithm == PoolingAlgorithm::kMax) {
    if constexpr (kIsFloat) {
      StoreElement(desc.dst.data_type(), highest, dst, dst_offset);
    } else {
      static_cast<T*>(dst)[dst_offset] = highest;
    }
    return;
  }
  const bool include = desc.algorithm == PoolingAlgorithm::kAvgIncludePadding;
  const auto total =
      static_cast<float>(static_cast<std::conditional_t<kIsFloat, float, int32_t>>(sum));
  const float divisor = include ? TapsOf(desc) : static_cast<float>(count);
  StoreElement(desc.dst.data_type(), total / divisor, dst, dst_offset);
}

// The number of the maximum among the taps of the window of dst element `index`: the first of
// equals, a NaN before all numbers.
int64_t PlaceOfMaximum(const PoolingDesc& desc, const float* src, const Dims& index) {
  const InsideWindow window = WindowOf(desc, index);
  Dims at = index;
  std::optional<float> highest;
  int64_t place = 0;
  ForEachOperation(window.taps, [&](const Dims& tap) {
    int64_t number = 0;
    for (size_t d = 0; d < tap.size(); ++d) {
      at[d + 2] = window.begin[d] + tap[d];
      const int64_t start = index[d + 2] * desc.strides[d] - desc.padding_left[d];
      number = number * desc.kernel[d] + at[d + 2] - start;
    }
    const float value = src[desc.src.Offset(at)];
    if (highest && (value <= *highest || std::isnan(*highest))) return;
    highest = value;
    place = number;
  });
  return place;
}

// The maximum for training.
std::unique_ptr<Primitive> CreateSavingPlaces(const PoolingDesc& desc, PrimitiveInfo info) {
  const auto compute = [desc, type = PlaceType(desc)](const ReferencePiece& piece) {
    const auto* src = piece.Get<const float>(kArgSrc);
    piece.ForEach([&](const Dims& index) {
      PoolWindow(desc, src, index, piece.Find(kArgDst));
      const int64_t place = PlaceOfMaximum(desc, src, index), at = desc.dst.Offset(index);
      if (type == DataType::kU8) {
        piece.Get<uint8_t>(kArgWorkspace)[at] = static_cast<uint8_t>(place);
      } else {
        piece.Get<int32_t>(kArgWorkspace)[at] = static_cast<int32_t>(place);
      }
    });
  };
  return CreateReferencePrimitive(std::move(info), {desc.dst.dims(), desc.kernel}, compute);
}

template <typename T>
std::unique_ptr<Primitive> CreateTyped(const PoolingDesc& desc, PrimitiveInfo info) {
  const auto compute = [desc](const ReferencePiece& piece) {
    const T* src = piece.Get<const T>(kArgSrc);
    void* dst = piece.Find(kArgDst);
    piece.ForEach([&](const Dims& index) { PoolWindow(desc, src, index, dst); });
  };
  return CreateReferencePrimitive(std::move(info), {desc.dst.dims(), desc.kernel}, compute);
}

}  // namespace

absl::StatusOr<PoolingDesc> ResolveReference(const Request<PoolingDesc>& request) {
  return ResolveDefaults(request.desc, request.attributes);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const Request<PoolingDesc>& request) {
  const PoolingDesc& desc = request.desc;
  PrimitiveInfo info = InfoOf(request);
  if (SavesPlaces(desc)) return CreateSavingPlaces(desc, std::move(info));
  switch (desc.src.data_type()) {
    case DataType::kU8:
      return CreateTyped<uint8_t>(desc, std::move(info));
    case DataType::kS8:
      return CreateTyped<int8_t>(desc, std::move(info));
    case DataType::kS32:
      return CreateTyped<int32_t>(desc, std::move(info));
    case DataType::kBf16:
      return CreateTyped<Bf16Number>(desc, std::move(info));
    default:
      return CreateTyped<float>(desc, std::move(info));
  }
}

}  // namespace tilewire::pooling
