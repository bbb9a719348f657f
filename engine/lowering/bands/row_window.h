// SPDX-License-Identifier: Apache-2.0
//
// Which rows of its source a primitive of a chain reads for some rows of its result. Pure
// functions.
#ifndef ENGINE_LOWERING_BANDS_ROW_WINDOW_H_
#define ENGINE_LOWERING_BANDS_ROW_WINDOW_H_

#include <cstdint>

#include "engine/base/range.h"
#include "engine/lowering/plan/primitive_request.h"

namespace tilewire::lowering {

// Along the height. A convolution or pooling gathers: row o of its result reads `span` rows, from
// row o * stride - padding on. A deconvolution spreads: row i of its source reaches `span` rows of
// its result, from row i * stride - padding on; `span` is at least the stride.
struct RowWindow {
  int64_t in = 0, out = 0, span = 1, stride = 1, padding = 0;
  bool spreads = false;
};

// Whether the request is of a primitive that a RowWindow describes.
bool HasRowWindow(const PrimitiveRequest& request);
RowWindow WindowOf(const PrimitiveRequest& request);

// The rows of a source that some rows of a result read, and the padding of the primitive that reads
// only these and writes only those.
struct Reach {
  Range src;
  int64_t before = 0, after = 0;
};
Reach ReachOf(const RowWindow& window, const Range& dst);

}  // namespace tilewire::lowering

#endif  // ENGINE_LOWERING_BANDS_ROW_WINDOW_H_
