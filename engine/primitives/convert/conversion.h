// SPDX-License-Identifier: Apache-2.0
//
// convert.h's formula for elements that lie one after the other. Thread-safe.
#ifndef ENGINE_PRIMITIVES_CONVERT_CONVERSION_H_
#define ENGINE_PRIMITIVES_CONVERT_CONVERSION_H_

#include <cstdint>

#include "engine/memory/data_type.h"

namespace tilewire::convert {

// From `count` elements of `src_type` to as many of `dst_type`; the bytes do not overlap.
using ConvertRun = void (*)(const void* src, int64_t count, void* dst);
ConvertRun ConversionOf(DataType src_type, DataType dst_type);

}  // namespace tilewire::convert

#endif  // ENGINE_PRIMITIVES_CONVERT_CONVERSION_H_
