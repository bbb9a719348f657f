// SPDX-License-Identifier: Apache-2.0
//
// convert.h's formula for elements that lie one after the other. Thread-safe.
#ifndef ENGINE_PRIMITIVES_CONVERT_CONVERSION_H_
#define ENGINE_PRIMITIVES_CONVERT_CONVERSION_H_

#include <cstdint>
#include <vector>

#include "engine/memory/data_type.h"
#include "engine/primitives/convert/convert.h"

namespace tilewire::convert {

// From `count` elements of `src_type` to as many of `dst_type`; the bytes do not overlap.
using ConvertRun = void (*)(const void* src, int64_t count, void* dst);
ConvertRun ConversionOf(DataType src_type, DataType dst_type);

// The same by way of other types. Immutable.
class ConversionChain {
 public:
  // At least two: from the first to the last.
  explicit ConversionChain(std::vector<DataType> types);
  void Run(const std::byte* src, int64_t count, std::byte* dst) const;

 private:
  void RunPiece(const std::byte* src, int64_t count, std::byte* dst) const;

  const std::vector<DataType> types_;
  std::vector<ConvertRun> steps_;
};

// The types of a descriptor: of src, those between, of dst.
std::vector<DataType> TypesOf(const ConvertDesc& desc);

}  // namespace tilewire::convert

#endif  // ENGINE_PRIMITIVES_CONVERT_CONVERSION_H_
