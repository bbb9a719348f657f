// SPDX-License-Identifier: Apache-2.0
//
// Tensors for the probes of primitives: see probes.h. Thread-safe.
#ifndef ENGINE_PRIMITIVES_PROBE_TENSORS_H_
#define ENGINE_PRIMITIVES_PROBE_TENSORS_H_

#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/memory/format_tag.h"
#include "engine/memory/memory_desc.h"

namespace tilewire::probes {

// The layouts that rows may be made for.
inline constexpr absl::string_view kImageTags[] = {"nChw16c", "nChw8c", "nchw", "nhwc"};

inline MemoryDesc Tagged(Dims dims, DataType type, absl::string_view tag) {
  return MemoryDesc::Create(std::move(dims), type, *ParseFormatTag(tag)).value();
}

inline MemoryDesc Any(Dims dims, DataType type) {
  return MemoryDesc::CreateAny(std::move(dims), type).value();
}

// The types that a primitive with weights may write when it reads `type`, and their type.
inline std::vector<DataType> ResultTypes(DataType type) {
  if (IsByte(type)) return {DataType::kU8, DataType::kS8, DataType::kS32, DataType::kF32};
  return {type, type == DataType::kF32 ? DataType::kBf16 : DataType::kF32};
}
inline DataType WeightsType(DataType type) {
  if (type == DataType::kBf16) return DataType::kF32;  // rounded where they are packed
  return IsByte(type) ? DataType::kS8 : type;
}

// An image, and a dst of dims `other` in the same layout, for each of kImageTags.
template <typename Desc>
std::vector<Desc> Images(DataType type, const Dims& other) {
  std::vector<Desc> probes;
  for (absl::string_view tag : kImageTags) {
    Desc desc;
    desc.src = Tagged({2, 32, 8, 8}, type, tag);
    desc.dst = Tagged(other, type, tag);
    probes.push_back(std::move(desc));
  }
  return probes;
}

}  // namespace tilewire::probes

#endif  // ENGINE_PRIMITIVES_PROBE_TENSORS_H_
