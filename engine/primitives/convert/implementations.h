// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of table.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_CONVERT_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_CONVERT_IMPLEMENTATIONS_H_

#include "engine/primitives/convert/convert.h"

namespace tilewire::convert {

// Generated code, shared by avx512_vectors and avx2_vectors: between integers, f32 and bool, and
// between f32 and f64, in layouts whose elements follow each other along the rows of dst. AVX2 has
// no conversions between f32 and u32, s64 or u64.
TILEWIRE_ROW(ConvertDesc, Vectors);

// Any types in one dense layout, in plain loops.
TILEWIRE_ROW(ConvertDesc, Dense);

TILEWIRE_ROW(ConvertDesc, Reference);

}  // namespace tilewire::convert

#endif  // ENGINE_PRIMITIVES_CONVERT_IMPLEMENTATIONS_H_
